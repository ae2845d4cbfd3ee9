// How byte-level vocabularies spell bytes: each by a printable character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// The character that stands for a byte: itself where Latin-1 prints it, else one from U+0100 on.
char32_t byte_character(std::uint8_t byte);

/// The byte that a character stands for, or -1.
int character_byte(char32_t c);

/// The bytes that a token spells; empty if one of its characters stands for none.
std::optional<std::string> spelt_bytes(std::string_view token);

/// The byte that a token such as <0x0A> stands for.
std::optional<std::uint8_t> byte_token(std::string_view token);

}  // namespace rlx
