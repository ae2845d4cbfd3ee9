"""Inputs of whole models: a page of text, a picture of shapes, a voice; the same at every call. Needs NumPy."""
import numpy

RATE = 16000
GLYPHS = {  # 5 x 7, a row a number
    "R": (30, 17, 17, 30, 20, 18, 17), "L": (16, 16, 16, 16, 16, 16, 31), "X": (17, 17, 10, 4, 10, 17, 17),
    "2": (14, 17, 1, 2, 4, 8, 31), "0": (14, 17, 19, 21, 25, 17, 14), "6": (6, 8, 16, 30, 17, 17, 14),
    "O": (14, 17, 17, 17, 17, 17, 14), "N": (17, 25, 21, 19, 17, 17, 17), " ": (0,) * 7}


def text_mask(text, scale):
    """Booleans [7 * scale, 6 * scale * len(text)], true where there is ink."""
    rows = numpy.zeros((7, 6 * len(text)), bool)
    for at, letter in enumerate(text):
        for row, bits in enumerate(GLYPHS[letter]):
            for column in range(5):
                rows[row, 6 * at + column] = bits >> (4 - column) & 1
    return numpy.kron(rows, numpy.ones((scale, scale), bool))


def page(height, width, scale, lines=1):
    """f32 [3, height, width] in 0 to 1: dark text on light paper."""
    y, x = numpy.mgrid[0:height, 0:width]
    paper = 0.9 + 0.05 * numpy.sin(x / 37) * numpy.cos(y / 53)
    for line in range(lines):
        ink = text_mask("RLX 2026 ONNX", scale)
        top = (line + 1) * height // (lines + 1) - ink.shape[0] // 2
        ink = ink[:, :width - 8]
        part = paper[top:top + ink.shape[0], 4:4 + ink.shape[1]]
        part[ink[:part.shape[0], :part.shape[1]]] = 0.1
    return numpy.stack([paper, paper * 0.98, paper * 0.95]).astype(numpy.float32)


def shapes(height, width):
    """f32 [3, height, width] in 0 to 1: ellipses of several colours before a gradient."""
    y, x = numpy.mgrid[0:height, 0:width] / numpy.array([height, width]).reshape(2, 1, 1)
    picture = numpy.stack([x, y, 1 - x])
    for cx, cy, rx, ry, colour in ((0.5, 0.3, 0.1, 0.14, (0.9, 0.7, 0.6)), (0.5, 0.65, 0.2, 0.25, (0.85, 0.65, 0.55)),
                                   (0.2, 0.7, 0.08, 0.2, (0.2, 0.4, 0.8))):
        inside = ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1
        picture[:, inside] = numpy.array(colour).reshape(3, 1)
    return picture.astype(numpy.float32)


def voice(samples):
    """f32 [samples] at 16 kHz: harmonics of a wandering pitch under three formants, in syllables, with some noise."""
    t = numpy.arange(samples) / RATE
    pitch = 130 + 25 * numpy.sin(2 * numpy.pi * 0.7 * t) + 4 * numpy.sin(2 * numpy.pi * 5 * t)
    phase = 2 * numpy.pi * numpy.cumsum(pitch) / RATE
    sound = numpy.zeros(samples)
    for harmonic in range(1, 25):
        frequency = harmonic * pitch
        strength = sum(numpy.exp(-((frequency - f) / w) ** 2) for f, w in ((600, 150), (1200, 200), (2600, 300)))
        sound += strength * numpy.sin(harmonic * phase)
    sound *= numpy.clip(numpy.sin(2 * numpy.pi * 2 * t), 0, 1)
    noise = numpy.random.default_rng(1).standard_normal(samples)
    return (0.1 * sound + 0.002 * noise).astype(numpy.float32)


def spectrum(frames, bins, hop=160):
    """f32 [frames, bins]: logarithm of the power of a voice, the lowest bins of a transform of 512 samples."""
    sound = voice(512 + hop * frames)
    windows = numpy.stack([sound[i * hop:i * hop + 512] for i in range(frames)]) * numpy.hanning(512)
    return numpy.log10(numpy.abs(numpy.fft.rfft(windows))[:, :bins] ** 2 + 1e-9).astype(numpy.float32)
