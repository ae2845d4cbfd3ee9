"""Chat templates in the styles of public models, and small ones for each construct; with variables to render them."""

CHATML = """{% for message in messages %}
{% if loop.first and message['role'] != 'system' %}
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{% endif %}
"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = \
messages[0]['content'] %}{% else %}\
{% set rest = messages %}{% set system = false %}{% endif %}{% for message in rest %}\
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate \
user/assistant') }}{% endif %}\
{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + \
message['content'] %}\
{% else %}{% set content = message['content'] %}{% endif %}\
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}\
{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message, taken out of the list. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "You may call these functions:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + \
'<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time, please") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and \
message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

PHI3 = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\\n' + \
message['content'] + '<|end|>\\n'}}\
{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}\
{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% \
endfor %}\
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nSignatures within <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and \
not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\
\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + \
'\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

COMMAND = """{%- macro document_turn(documents) -%}
{# One turn for all documents #}
<|turn|>[
{%- for doc in documents %}
{{ "\\n" if loop.first else ",\\n" }}    {{ {"id": loop.index0, "text": doc.text | default("none", true)} | \
tojson(sort_keys=true) }}
{%- endfor %}

]<|end|>
{%- endmacro %}
{%- macro type_of(spec, nullable=false) -%}
  {%- if spec.type == "array" -%}List[{{ type_of(spec["items"]) }}]{%- elif spec.type is string -%}{{ {"string": \
"str", "integer": "int"}.get(spec.type, spec.type) }}
  {%- else -%}any{%- endif -%}{%- if nullable %} | None{% endif -%}
{%- endmacro -%}
{{ bos_token }}{% for tool in tools or [] -%}
def {{ tool.function.name }}({% for name, spec in tool.function.parameters.properties | dictsort %}{{ name }}: {{ \
type_of(spec, name not in tool.function.parameters.required) }}{{ ", " if not loop.last }}{% endfor %})
    {{ tool.function.description | replace("\\n", " ") | indent(4) }}
{% endfor -%}
{%- if documents %}{{ document_turn(documents) }}{% endif %}
{%- for message in messages -%}
{%- if message.role | lower == 'system' %}{% continue %}{% endif -%}
<|{{ message.role | upper }}|>{% generation %}{{ message.content }}{% endgeneration %}<|end|>
{%- endfor %}"""

TOOLS = [
    {
        "type": "function", "function": {
            "name": "get_weather", "description": "The weather\nof a place.", "parameters": {
                "type": "object", "properties": {
                    "place": {
                        "type": "string", "description": "A \"name\" with ünïcödé <&>"}, "days": {
                            "type": "integer"}, "tags": {
                                "type": "array", "items": {
                                    "type": "string"}}}, "required": ["place"]}}}, {
                                        "type": "function", "function": {
                                            "name": "add", "description": "Adds", "parameters": {
                                                "type": "object", "properties": {
                                                    "a": {
                                                        "type": "number"}}, "required": []}}}]

PLAIN = [{"role": "user", "content": "Hello,  world! "}]
TURNS = [{"role": "system", "content": " You are   brief.\n"}, {"role": "user", "content": "What is 1+1?"},
         {"role": "assistant", "content": "2"}, {"role": "user", "content": "日本語で? 😀 'quoted' \"text\"\n"}]
NO_SYSTEM = TURNS[1:]
THINKING = NO_SYSTEM[:1] + [{"role": "assistant", "content": "<think>\nlet me see\n</think>\n\n2"},
    {"role": "user", "content": "and?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n3"}]
CALLS = [{"role": "user", "content": "Weather in Köln?"},
         {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {
             "name": "get_weather",
             "arguments": {"place": "Köln", "days": 2, "deep": [1, 2.5, None, True, {"k": "v"}]}}}]},
         {"role": "tool", "name": "get_weather", "content": "{\"rain\": true}"},
         {"role": "assistant", "content": "It rains."}, {"role": "user", "content": "Thanks"}]
PARTS = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " Look at this "}]}]
WRONG = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


def model_cases():
    base = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None}
    for template in (CHATML, LLAMA2, LLAMA3, MISTRAL, GEMMA, PHI3, ZEPHYR, QWEN, COMMAND):
        for messages in (PLAIN, TURNS, NO_SYSTEM, THINKING, WRONG):
            for prompt in (True, False):
                yield template, base | {"messages": messages, "add_generation_prompt": prompt}
    for template in (LLAMA3, MISTRAL, QWEN, COMMAND):
        for messages in (PLAIN, CALLS, TURNS):
            yield template, base | {"messages": messages, "add_generation_prompt": True, "tools": TOOLS}
    yield QWEN, base | {"messages": PLAIN, "add_generation_prompt": True, "enable_thinking": False}
    yield GEMMA, base | {"messages": PARTS, "add_generation_prompt": True}
    yield LLAMA3, base | {"messages": PLAIN, "add_generation_prompt": True, "date_string": "1 Jan 2000"}
    yield COMMAND, base | {"messages": PLAIN, "add_generation_prompt": True,
                           "documents": [{"text": "first \"one\""}, {"text": ""}, {"title": "x"}]}


VALUES = {
    "s": "Hello, wOrld", "u": "Größe ΣΑΣ ñ 日本", "n": 7, "m": -3, "f": 2.5, "t": True, "z": None, "e": "", "l": [
        3, 1, 2], "w": [
            "b", "A", "c", "a"], "d": {
                "b": 1, "a": [
                    1, "x"], "items": "key"}, "p": "  padded\t\n", "q": "it's \"q\" \\ \n", "r": [
                        {
                            "k": "x", "v": 1}, {
                                "k": "y", "v": 2}, {
                                    "k": "x", "v": 3}], "big": 123456789012, "dot": "a.b.c"}

EXPRESSIONS = """
s|upper;s|lower;s|title;s|capitalize;u|upper;u|lower;"hello wORLD-foo \
bar's"|title;p|trim;"xxhixx"|trim("x");s|length;l|length;d|length;u|length
s.upper();s.title();"they're bill's".title();p.strip();p.lstrip();p.rstrip();"..a..".strip(".");s.split();s.split(",\
");dot.split(".");dot.split(".", 1)
"a  b c".split(" ");" a  b ".split();s.startswith("Hell");s.endswith(("x","wOrld"));s.replace("l","L");s.replace("l"\
,"L",1);s|replace("l","LL");s|replace("l","LL",2)
dot.rsplit(".",1);"a\\nb\\r\\nc".splitlines();s.find("w");s.find("zz");s.rfind("l");s.count("l");", \
".join(w);"abc".isdigit();"123".isdigit();"aB".isalpha()
"x1".isalnum();" ".isspace();"AB".isupper();"ab".islower();"prefix-x".removeprefix("prefix-");"x.txt".removesuffix("\
.txt")
l|first;l|last;e|first;s|first;u|last;l|sort;w|sort;w|sort(case_sensitive=true);l|sort(reverse=true);r|sort(attribut\
e="v", reverse=true)|map(attribute="k")|list
l|reverse|list;s|reverse;l|join;l|join(", ");r|join("-", attribute="k");w|unique|list;["a","A","b"]|unique|list;l|su\
m;l|min;l|max;w|min;r|sum(attribute="v")
r|selectattr("k","equalto","x")|list|length;r|selectattr("k","eq","x")|map(attribute="v")|list;r|rejectattr("k","=="\
,"x")|map(attribute="v")|join(",");l|select("odd")|list
l|reject("even")|list;[0,1,"",2]|select|list;r|map(attribute="zz", \
default="none")|list;w|map("upper")|list;w|map("replace","a","X")|join;r|selectattr("zz")|list
d|tojson;d|tojson(indent=2);l|tojson;l|tojson(indent=4);q|tojson;u|tojson;z|tojson;t|tojson;f|tojson;n|tojson;d|tojs\
on(separators=(",",":"));d|tojson(sort_keys=true);[]|tojson(indent=2);{}|tojson
"\\x01\\x7f\\u2028</script>&'"|tojson;1e100|tojson;1e-7|tojson;0.1|tojson;1.0|tojson;123456789.123|tojson;1e16|tojso\
n;123456789012345678.0|tojson;5e-324;1e22;0.0001;0.00001;100000.0;-0.0
nope|default("x");e|default("x");e|default("x", true);z|default("x");z|d("x",true);nope|default;nope;nope|upper;nope\
|length;nope|list;nope|join;nope|string;nope is defined
l;d;w;t;z;f;q;(1,);(1,2);();[];{};[q];["a'b"];['a"b'];["\\t\\x00é\\u200b😀"];[1.0,true,none];{"k":[1,{"x":none}]};nope \
~ "x";[nope|default(none)]
n+m;n-m;n*m;n/2;n//2;n%2;m//2;m%2;-n;+n;n**2;2**-1;-2**2;f*2;f//2;-f%2;7.5%2;1/3;10/5;n+f;t+1;"a"*3;3*"ab";l*2;[1]+[\
2,3];"a"+"b";big*1000;1_000
n==7;n!=7;n<8;n<=7;n>7;n>=8;1<2<3;1<3<2;"a"<"b";"abc"<"abd";[1,2]<[1,3];1==1.0;true==1;"1"==1;none==false;nope==nope\
;(1,2)==[1,2];{"a":1}=={"a":1.0};l==[3,1,2]
"a" in "abc";"z" not in "abc";1 in l;5 in l;"a" in d;"zz" in d;1 in nope;n in (7,8);not t;not e;t and n;e and n;e or \
n;z or e or "last";t and not e;not n == 7
"yes" if t else "no";"yes" if e else "no";"yes" if e;("a" if t else "b") ~ "c";1 if 0 else 2 if 0 else 3
n ~ s;n ~ f ~ t ~ z;"a" ~ 1 + 2;1 ~ 2 ~ 3;"x" ~ [1,"a"]
l[0];l[-1];l[5];l[0:2];l[:-1];l[::-1];l[1:];l[::2];s[0];s[-1];s[1:4];u[::-1];s[10:2];s[:100];d["a"];d.a;d["zz"];d.zz\
;d["items"];d.b;l.0;r[0].k;r[0]["k"];r[-1].v;s[3:-2:2];l[-2:];dot[1]
d.items()|list;d.keys()|list;d.values()|list;d.get("b");d.get("zz");d.get("zz", \
5);d|items|list;d|dictsort;d|dictsort(by="key",reverse=true)|list;d|list;d|first;nope|items|list
n is number;f is number;t is number;s is number;n is integer;t is integer;f is float;t is boolean;n is boolean;s is \
string;e is string;l is string;d is mapping;l is mapping;l is sequence
s is sequence;n is sequence;l is iterable;n is iterable;d is iterable;nope is iterable;z is none;nope is none;z is \
defined;nope is undefined;t is true;1 is true;t is false;z is not none
n is odd;n is even;n is divisibleby 7;n is divisibleby(2);n is eq 7;n is equalto(8);n is ne 7;n is gt 3;n is lt(3);n \
is ge 7;n is le 6;"a" is in "abc";n is in [7];s is lower;"A" is upper
t is sameas true;l is sameas l;range is callable;n is callable;s is defined and n is odd;s is string or nope;not s is \
string;s is not string;n is divisibleby 7 and t
n|int;"42"|int;"4x"|int;"4x"|int(-1);"3.9"|int;3.9|int;"  5 "|int;t|int;z|int;"1.5"|float;"x"|float;n|float;f|string\
;t|string;z|string;l|string;m|abs;2.5|round;3.5|round;2.675|round(2);n|round
range(3)|list;range(1,4)|list;range(5,0,-2)|list;range(0)|list;dict(a=1,b="x");dict(d, \
c=3);namespace(a=1).a;"a\\nb"|indent;"a\\nb\\n\\nc"|indent(2);"a\\nb"|indent(2,true);"a\\n\\nb"|indent(2,false,true)\
;"a\\nb"|indent("> ")
"lit" "eral";'single \\'q\\'';"tab\\tnew\\\\n";"\\u00e9\\x41";"\\q";1e3;1.5e-2;true;True;none;None;false;-1;- \
1;1.0;007|default(1) if false else 1;(1);((2));[1,2,];{"a":1,}
strftime_now("%Y-%m-%d %H:%M:%S");strftime_now("%d %b %Y");strftime_now("%A %B \
%j");s|string|length;[[1,2],[3]]|map("length")|list;[[1,2],[3,4]]|map("first")|join;[1,2,3]|map("string")|join("+")
n.foo;n.foo is defined;s.nope;l.foo;z.foo;t.foo is undefined;s["upper"]();d.get;"%s" % \
3;"x".format(1);s.zfill(3);l.append(1);d.update({"x":1});l.pop();nope.foo;nope["x"];z.foo.bar;n();nope()
"a" < 1;[1] + "a";"a" + 1;1 + none;nope + 1;-"a";1/0;1%0;l|nofilter;l is \
notest;[1,"a"]|sort;5|length;l["x"];"abc"["x"];range(0,5,0);dict(5);d|tojson(foo=1);"x"|trim(5,6);cycler(1)
raise_exception("stop");5 in 5;"a" in none;1 in "a";[1,2]|join(attribute="x");(1,2)|tojson;nope|tojson;range|tojson;\
{1:2};{"a":1}[("a")];s|truncate(3);s|center(20);s|wordcount;"<b>"|escape;"<b>"|e;"<b>"|safe
"""

STATEMENTS = [
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1, y='a') %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y "
    "}}{{ ns.zz }}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ "
    "loop.last }}{{ loop.length }}"
    "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for i in [] %}x{% else %}empty{% endfor %}{% for i in nope %}x{% else %}none{% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}/{{ loop.length }}{% else %}no{% endfor %}{% for i in l if i > 9 %}{{ i }}{% "
    "else %}no{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'añ' "
    "%}<{{ c }}>{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, [5, 6])] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for x in 1, 2 %}{{ x "
    "}}{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i "
    "}}{% endfor %}",
    "{% for i in [1,2] %}{% for j in [3,4] %}{{ i }}{{ j }}{{ loop.index }}{% if j == 3 %}{% continue %}{% endif "
    "%}!{% endfor %}{{ loop.last }}{% endfor %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}{% set (c, d2) = [5, 6] %}{{ c }}{{ d2 }}",
    "{% set x %}  block {{ n }}\n{% endset %}[{{ x }}]{% set y | upper | trim %} abc {% endset %}[{{ y }}]",
    "{% macro m(a, b='x', c=a) %}<{{ a }}|{{ b }}|{{ c }}|{{ n }}>{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ "
    "m(b=5, a=6) }}{{ m() }}",
    "{% macro fact(n) %}{% if n > 1 %}{{ n }}*{{ fact(n - 1) }}{% else %}1{% endif %}{% endmacro %}{{ fact(5) }}",
    "{% macro m() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ m() }}{% set x = m() %}{{ x | lower }}",
    "{% macro m(x) %}{% set n = x %}{{ n }}{% endmacro %}{{ m(9) }}{{ n }}{{ m(1, 2) }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(zz=1) }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}{% filter trim | replace('a', 'b') %}  aaa {% endfilter %}",
    "{% generation %}{{ s }}{% set x = 5 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% elif n == 7 %}c{% else %}d{% endif %}{% if 0 %}{% elif 0 %}{% endif %}",
    "{% raw %}{{ not }} {% parsed %}{% endraw %}!{%- raw -%}  x  {%- endraw -%} y",
    "a {#- comment -#} b {# {{ x }} #} c\n{# line #}\nd",
    "  {% if true %}\n  x\n  {% endif %}\n y\n",
    "a\n  {%- if true %} b {% endif -%}  \n c",
    "a  {{- 'b' -}}  c {{ 'd' }}\n{{ 'e' }}\n\n{% set q = 1 %}\n\nf",
    "  {%+ if true %} x {%+ endif %}\n y {% if true +%}\n z{% endif %}",
    "\n\n  {{ n }}  \n\n", "x\n", "x\n\n", "{{ n }}\n", "{% if t %}\n{% endif %}\n",
        "\t{% if t %}x{% endif %}\t{% if t %}y{% endif %}\n",
    "a\r\n{% if t %}\r\nb\r\n{% endif %}\r\nc\rd", "{{ 'a\nb' }}", "{{\n n\n}}",
        "{{ {'a': {'b': 1}}.a.b }}{{ {} }}{{ [{}] }}",
    "{{ '}}' }}{{ '%}' }}{{ \"{{\" }}", "{ {x} {% if t %}{ {{ n }} }{% endif %}", "{{ n }}{{ n }}", "",
        "plain ünïcödé",
        "{{- n -}}",
        "   {#- x -#}   ",
    "{%- for x in l -%}\n {{ x }}\n{%- endfor -%}\n end", "{% for x in l %}\n{{ x }}\n{% endfor %}\nend",
        "{% for x in l -%}\n  {{ x }},\n{%- endfor %}",
    "{% set x = l|length > 2 and s is string %}{{ x }}", "{% set f2 = s.upper %}{{ f2() }}",
        "{% set x = range %}{{ x(2)|list }}",
    "{{ loop }}", "{% for i in l %}{% endfor %}{{ i }}", "{% for loop in l %}{{ loop }}{% endfor %}",
    "{% for m in r %}{% if m.k == 'x' %}{% set found = m.v %}{% endif %}{{ found }}{% endfor %}{{ found is defined }}",
    "{% for m in r %}{{ m.k if not loop.last else 'end' }}{{ ', ' if not loop.last }}{% endfor %}",
        "{{ (l | map('string') | list)[::-1] | join }}",
    "{% for g in [[1,2],[3]] %}{% set outer = loop %}{% for x in g %}{{ outer.index }}{{ loop.index }}{{ x }} {% "
    "endfor %}{% endfor %}",
    # What must fail.
    "{% if n %}", "{% endif %}", "{% for x in %}{% endfor %}", "{% for in l %}{% endfor %}", "{{ n", "{% set = 1 %}",
        "{{ 1 + }}",
        "{{ (1 }}",
        "{{ 'a }}",
        "{% unknown %}",
    "{% include 'x' %}", "{% set n.x = 1 %}", "{{ n | }}", "{{ | upper }}", "{{ n is }}", "{{ [1, }}", "{% break %}",
        "{# open",
        "{% raw %}x",
        "{{ a b }}",
        "{% else %}",
    "{% macro %}{% endmacro %}", "{% for x in l %}{% endif %}", "{% set a, b = [1] %}", "{% set a, b = [1,2,3] %}",
        "{% for a, b in [1] %}{% endfor %}",
        "{% for x in 5 %}{% endfor %}",
    "{% if t %}{{ raise_exception('no ' ~ n) }}{% endif %}", "{{ n.__class__ }}{{ ''.__class__ }}", "{{ }}", "{% %}",
        "{{ 1.2.3 }}",
        "{{ $ }}",
        "{{ a && b }}",
        "{% endfor %}x",
]


def construct_cases():
    for line in EXPRESSIONS.strip().splitlines():
        for expression in line.split(";"):
            yield "{{ " + expression + " }}", VALUES
    for template in STATEMENTS:
        yield template, VALUES
