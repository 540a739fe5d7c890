defmodule Skillbook.Frontmatter do
  @moduledoc """
  Reads and writes the YAML block at the top of a Markdown document.

      iex> {:ok, document} = Skillbook.Frontmatter.parse("---\\nname: hello\\n---\\n# Hello\\n")
      iex> {document.data, document.body}
      {%{"name" => "hello"}, "# Hello\\n"}

  The block starts with the first line `---` and ends with the next such line. Blanks after the
  dashes, CRLF and a byte order mark are accepted. The block contains a YAML mapping or nothing.

  ## Values

  Maps have string keys, as written. Scalars have the types of YAML's core schema:

    * `true`, `false`, `null` and `~` - booleans and `nil`
    * `12`, `-3`, `0x1f` - 64-bit integers; larger ones are floats
    * `1.5`, `1e3` - floats; `.inf` and `.nan` stay text
    * everything else - strings: dates, `yes`, `007`, `1.2.3`, and quoted values

  ## Diagnostics

  Every repair and every ignored part has a `Skillbook.Diagnostic`:

    * `:frontmatter_repaired` - a line that is invalid in strict YAML was repaired
    * `:duplicate_key` - a key is written more than once; the last one is used
    * `:frontmatter_tag` - the YAML tag of a value was ignored

  ## Limits

  Blocks larger than 1 MiB, values nested more than 64 levels deep, and aliases that expand the
  data to more than 2 MiB are errors.
  """

  alias Skillbook.{Diagnostic, FrontmatterError, Native}

  @typedoc "A value in frontmatter."
  @type value ::
          nil
          | boolean()
          | integer()
          | float()
          | String.t()
          | [value()]
          | %{optional(String.t()) => value()}

  @typedoc "A mapping in its order, to write."
  @type pairs :: [{String.t(), value() | pairs()}]

  @typedoc """
  A parsed document.

    * `:data` - the data of the block; an empty map without a block
    * `:body` - the text after the block, as written
    * `:present` - whether the document has a block
    * `:diagnostics` - the diagnostics, sorted by line
  """
  @type document :: %{
          data: %{optional(String.t()) => value()},
          body: String.t(),
          present: boolean(),
          diagnostics: [Diagnostic.t()]
        }

  @doc ~S'''
  Parses a document.

      iex> {:ok, document} = Skillbook.Frontmatter.parse("---\ntags: [a, b]\n---\n# Hello\n")
      iex> document.data
      %{"tags" => ["a", "b"]}

  A document without a block has only a body:

      iex> Skillbook.Frontmatter.parse("# Hello\n")
      {:ok, %{data: %{}, body: "# Hello\n", present: false, diagnostics: []}}

  A line with an obvious meaning is repaired:

      iex> text = "---\ndescription: Note: short\n---\n"
      iex> {:ok, %{data: data, diagnostics: [diagnostic]}} = Skillbook.Frontmatter.parse(text)
      iex> data
      %{"description" => "Note: short"}
      iex> {diagnostic.code, diagnostic.line, diagnostic.column}
      {:frontmatter_repaired, 2, 14}

  Other invalid YAML is an error:

      iex> {:error, error} = Skillbook.Frontmatter.parse("---\ntags: [a, b\n---\n")
      iex> {error.kind, error.line}
      {:invalid, 3}
  '''
  @spec parse(binary()) :: {:ok, document()} | {:error, FrontmatterError.t()}
  def parse(text) when is_binary(text) do
    case Native.frontmatter_parse(text) do
      {:ok, _document} = ok -> ok
      {:error, fields} -> {:error, FrontmatterError.new(fields, text)}
    end
  end

  @doc ~S"""
  Like `parse/1`, but raises `Skillbook.FrontmatterError`.

      iex> Skillbook.Frontmatter.parse!("---\nname: hello\n---\n").data
      %{"name" => "hello"}
  """
  @spec parse!(binary()) :: document()
  def parse!(text) do
    case parse(text) do
      {:ok, document} -> document
      {:error, error} -> raise error
    end
  end

  @doc false
  # The fields that decide who may read a text and whether it is a skill by itself, and all of its
  # frontmatter as in `Skillbook.Entry`. The error is a text about a restriction that cannot be
  # read; then nobody may read the text.
  @spec access(binary()) ::
          {:ok,
           %{
             makes_skill: boolean(),
             is_described: boolean(),
             labels: [String.t()],
             excluded_for: [String.t()],
             data: %{optional(String.t()) => value()} | nil
           }}
          | {:error, String.t()}
  def access("---" <> _ = text), do: Native.frontmatter_access(text)
  def access("\uFEFF---" <> _ = text), do: Native.frontmatter_access(text)

  # Most notes have no frontmatter.
  def access(_text) do
    own = %{makes_skill: false, is_described: false, labels: [], excluded_for: [], data: nil}
    {:ok, own}
  end

  # Longer keys are no restrictions.
  @max_key 200

  @doc false
  # The restriction that the name of a field is or nearly is, or nil.
  @spec restriction(String.t()) :: String.t() | nil
  def restriction(key) when byte_size(key) <= @max_key and is_binary(key) do
    if String.valid?(key), do: Native.frontmatter_restriction(key)
  end

  def restriction(_key), do: nil

  @doc ~S"""
  Writes a document, which `parse/1` reads back.

  The data is a map, which is written sorted by key, or a list of `{key, value}`, which keeps its
  order; so are mappings inside it. Raises `ArgumentError` for terms other than `t:value/0`,
  integers larger than 64 bits, and values nested more than 64 levels deep.

      iex> data = [{"name", "hello"}, {"description", "Note: short"}]
      iex> Skillbook.Frontmatter.write(data, "# Hello\n")
      "---\nname: hello\ndescription: 'Note: short'\n---\n# Hello\n"
      iex> Skillbook.Frontmatter.write([{"job", [{"queue", "mail"}, {"attempts", 3}]}], "")
      "---\njob:\n  queue: mail\n  attempts: 3\n---\n"
  """
  @spec write(%{optional(String.t()) => value()} | pairs(), String.t()) :: String.t()
  def write(data, body) when is_map(data) and not is_struct(data) and is_binary(body) do
    write(Enum.sort_by(data, &elem(&1, 0)), body)
  end

  def write(pairs, body) when is_list(pairs) and is_binary(body) do
    case Native.frontmatter_write(pairs, body) do
      {:ok, document} ->
        document

      {:error, {:unsupported, term}} ->
        raise ArgumentError,
              "frontmatter holds nil, booleans, 64-bit integers, floats, UTF-8 strings, " <>
                "lists and maps with string keys, up to 64 deep, got: " <>
                inspect(term, limit: 5)
    end
  end
end
