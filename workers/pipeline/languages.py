"""Programming languages: how to recognise them, and which nodes of their grammar are definitions.

A grammar's `leaves` become one unit each; `containers` (classes, modules) are opened and what they hold becomes units of
its own; `wrappers` (decorators, exports, templates) belong to the definition they wrap. A language without a grammar is
cut by its lines.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Grammar:
    module: str
    function: str = "language"
    leaves: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_JAVASCRIPT_LEAVES = _set(
    "function_declaration generator_function_declaration method_definition lexical_declaration variable_declaration"
)
_TYPESCRIPT_LEAVES = _JAVASCRIPT_LEAVES | _set(
    "interface_declaration type_alias_declaration enum_declaration function_signature"
)
_TYPESCRIPT_CONTAINERS = _set("class_declaration abstract_class_declaration internal_module module")
_TYPESCRIPT_WRAPPERS = _set("export_statement ambient_declaration expression_statement")

GRAMMARS: dict[str, Grammar] = {
    "python": Grammar(
        "tree_sitter_python",
        leaves=_set("function_definition"),
        containers=_set("class_definition"),
        wrappers=_set("decorated_definition"),
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        leaves=_JAVASCRIPT_LEAVES,
        containers=_set("class_declaration"),
        wrappers=_set("export_statement"),
    ),
    "typescript": Grammar(
        "tree_sitter_typescript",
        "language_typescript",
        leaves=_TYPESCRIPT_LEAVES,
        containers=_TYPESCRIPT_CONTAINERS,
        wrappers=_TYPESCRIPT_WRAPPERS,
    ),
    "tsx": Grammar(
        "tree_sitter_typescript",
        "language_tsx",
        leaves=_TYPESCRIPT_LEAVES,
        containers=_TYPESCRIPT_CONTAINERS,
        wrappers=_TYPESCRIPT_WRAPPERS,
    ),
    "go": Grammar("tree_sitter_go", leaves=_set("function_declaration method_declaration type_declaration")),
    "rust": Grammar(
        "tree_sitter_rust",
        leaves=_set(
            "function_item function_signature_item struct_item enum_item union_item macro_definition"
        ),
        containers=_set("impl_item trait_item mod_item"),
    ),
    "java": Grammar(
        "tree_sitter_java",
        leaves=_set("method_declaration constructor_declaration annotation_type_declaration"),
        containers=_set("class_declaration interface_declaration enum_declaration record_declaration"),
    ),
    "c": Grammar(
        "tree_sitter_c", leaves=_set("function_definition struct_specifier enum_specifier type_definition")
    ),
    "cpp": Grammar(
        "tree_sitter_cpp",
        leaves=_set("function_definition enum_specifier type_definition"),
        containers=_set("class_specifier struct_specifier namespace_definition linkage_specification"),
        wrappers=_set("template_declaration"),
    ),
    "csharp": Grammar(
        "tree_sitter_c_sharp",
        leaves=_set("method_declaration constructor_declaration enum_declaration delegate_declaration"),
        containers=_set(
            "namespace_declaration class_declaration struct_declaration interface_declaration record_declaration"
        ),
    ),
    "ruby": Grammar(
        "tree_sitter_ruby", leaves=_set("method singleton_method"), containers=_set("class module")
    ),
    "php": Grammar(
        "tree_sitter_php",
        "language_php",
        leaves=_set("function_definition method_declaration"),
        containers=_set(
            "class_declaration interface_declaration trait_declaration enum_declaration namespace_definition"
        ),
    ),
    "bash": Grammar("tree_sitter_bash", leaves=_set("function_definition")),
    "sql": Grammar(
        "tree_sitter_sql",
        leaves=_set(
            "create_table create_view create_materialized_view create_function create_trigger create_type create_index"
        ),
        wrappers=_set("statement"),
    ),
}

_BY_SUFFIX = {
    suffix: language
    for language, suffixes in {
        "python": "py pyi pyw", "javascript": "js mjs cjs jsx", "typescript": "ts mts cts", "tsx": "tsx", "go": "go",
        "rust": "rs", "java": "java", "c": "c h", "cpp": "cc cpp cxx c++ hh hpp hxx ixx", "csharp": "cs csx",
        "ruby": "rb rake gemspec", "php": "php", "bash": "sh bash zsh ksh", "sql": "sql",
        "assembly": "s asm", "batch": "bat cmd", "clojure": "clj cljs cljc", "cmake": "cmake", "coffeescript": "coffee",
        "css": "css scss less", "dart": "dart", "diff": "diff patch", "elixir": "ex exs", "erlang": "erl hrl",
        "fortran": "f90 f95 f03", "groovy": "groovy gradle", "haskell": "hs lhs", "hcl": "hcl tf",
        "ini": "ini cfg conf properties", "julia": "jl", "kotlin": "kt kts", "lisp": "lisp el", "lua": "lua",
        "matlab": "m", "objectivec": "mm", "ocaml": "ml mli", "pascal": "pas", "perl": "pl pm",
        "powershell": "ps1 psm1", "protobuf": "proto", "r": "r", "scala": "scala", "solidity": "sol", "swift": "swift",
        "tcl": "tcl", "terraform": "tfvars", "toml": "toml", "verilog": "v sv", "vhdl": "vhd", "vba": "vbs vba vb",
        "yaml": "yml yaml", "zig": "zig",
    }.items()
    for suffix in suffixes.split()
}  # fmt: skip

_BY_MIME = {
    "text/x-python": "python", "text/x-script.python": "python", "application/javascript": "javascript",
    "text/javascript": "javascript", "application/typescript": "typescript", "text/x-typescript": "tsx",
    "text/x-golang": "go", "text/x-go": "go", "application/x-rust": "rust", "text/x-rust": "rust", "text/rust": "rust",
    "text/x-java": "java", "text/x-java-source": "java", "text/x-c": "c", "text/x-chdr": "c", "text/x-csrc": "c",
    "text/x-h": "cpp", "text/x-c++": "cpp", "text/x-c++src": "cpp", "text/x-c++hdr": "cpp", "text/x-csharp": "csharp",
    "application/x-ruby": "ruby", "text/x-ruby": "ruby", "text/x-php": "php", "application/x-php": "php",
    "application/x-httpd-php": "php", "text/x-shellscript": "bash", "text/x-sh": "bash", "application/x-sh": "bash",
    "application/x-sql": "sql", "text/x-sql": "sql", "application/sql": "sql",
    "text/x-asm": "assembly", "text/x-msdos-batch": "batch", "text/x-clojure": "clojure", "text/x-cmake": "cmake",
    "text/coffeescript": "coffeescript", "text/css": "css", "text/x-scss": "css", "text/x-dockerfile": "dockerfile",
    "text/x-diff": "diff", "text/x-erlang": "erlang", "text/x-fortran": "fortran", "text/x-groovy": "groovy",
    "text/x-hcl": "hcl", "text/x-julia": "julia", "text/x-lisp": "lisp", "text/x-makefile": "make",
    "text/x-matlab": "matlab", "text/x-objcsrc": "objectivec", "text-ocaml": "ocaml", "text/x-pascal": "pascal",
    "text/x-perl": "perl", "application/x-powershell": "powershell", "text/x-prolog": "prolog",
    "text/x-proto": "protobuf", "text/x-r": "r", "application/x-scala": "scala", "text/x-scala": "scala",
    "text/x-swift": "swift", "application/x-tcl": "tcl", "application/toml": "toml", "text/x-verilog": "verilog",
    "text/x-vhdl": "vhdl", "text/vbscript": "vba", "application/x-yaml": "yaml", "application/yaml": "yaml",
    "text/yaml": "yaml", "text/x-yaml": "yaml", "text/zig": "zig",
}  # fmt: skip

# Types that say "some text" or "one of a family": there the file name decides.
_VAGUE = frozenset(
    {"text/plain", "text/x-c", "text/x-h", "text/x-typescript", "text/x-ruby", "application/javascript"}
)


def language_of(mime_type: str, file_name: str | None) -> str | None:
    """The programming language, or None if this is not source code as far as anyone can tell."""
    by_mime = _BY_MIME.get(mime_type)
    if by_mime is None and mime_type not in _VAGUE:
        return None
    suffix = PurePosixPath(file_name or "").suffix[1:].lower()
    if mime_type in _VAGUE and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return by_mime
