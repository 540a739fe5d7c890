defmodule Skillbook.Frontmatter do
  @moduledoc """
  Reads and writes the YAML block at the top of a Markdown document.

  The block opens with a first line that is exactly `---` and closes with the next such line; blanks after the
  dashes, CRLF and a byte order mark are fine. It holds a YAML mapping or nothing.

  ## Values

  Maps have string keys, as written. Scalars are typed as YAML's core schema does:

    * `true`, `false`, `null` and `~` - booleans and `nil`
    * `12`, `-3`, `0x1f` - integers of 64 bits; longer ones are floats
    * `1.5`, `1e3` - floats; `.inf` and `.nan` stay text
    * everything else - strings: dates, `yes`, `007`, `1.2.3`, and whatever is quoted

  ## Diagnostics

  Nothing is dropped or mended without a `Skillbook.Diagnostic`:

    * `:frontmatter_repaired` - a line that strict YAML refuses was read as it was plainly meant
    * `:duplicate_key` - a key is written more than once, and the last one is used
    * `:frontmatter_tag` - a value's YAML tag was left out

  ## Limits

  Blocks of more than 1 MiB, values nested more than 64 deep and aliases that make the data larger than 2 MiB are
  refused.
  """

  alias Skillbook.{Diagnostic, FrontmatterError, Native}

  @typedoc "What frontmatter may hold."
  @type value ::
          nil
          | boolean()
          | integer()
          | float()
          | String.t()
          | [value()]
          | %{optional(String.t()) => value()}

  @typedoc """
  A document, taken apart.

    * `:data` - what the block says; an empty map where there is none
    * `:body` - the text after the block, as written
    * `:present` - whether there is a block
    * `:diagnostics` - in the order of the lines
  """
  @type document :: %{
          data: %{optional(String.t()) => value()},
          body: String.t(),
          present: boolean(),
          diagnostics: [Diagnostic.t()]
        }

  @doc ~S'''
  Takes a document apart.

      iex> Skillbook.Frontmatter.parse("---\nname: hello\ntags: [a, b]\n---\n# Hello\n")
      {:ok, %{data: %{"name" => "hello", "tags" => ["a", "b"]}, body: "# Hello\n", present: true, diagnostics: []}}

  A document without a block is all body:

      iex> Skillbook.Frontmatter.parse("# Hello\n")
      {:ok, %{data: %{}, body: "# Hello\n", present: false, diagnostics: []}}

  A line that a person would understand is mended:

      iex> {:ok, %{data: data, diagnostics: [diagnostic]}} = Skillbook.Frontmatter.parse("---\ndescription: Note: short\n---\n")
      iex> data
      %{"description" => "Note: short"}
      iex> {diagnostic.line, diagnostic.column, diagnostic.message}
      {2, 14, "an unquoted value may not contain a colon followed by a space; read as: description: \"Note: short\""}

  What cannot be mended is an error:

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
  Takes a document apart, or raises `Skillbook.FrontmatterError`.

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

  @doc ~S"""
  Writes a document; `parse/1` gives the data and the body back.

  The data is a map, written in the order of its keys, or a list of `{key, value}` in the order they shall have.
  Raises `ArgumentError` for what frontmatter cannot hold: other terms than `t:value/0`, integers of more than 64
  bits, values nested more than 64 deep.

      iex> Skillbook.Frontmatter.write([{"name", "hello"}, {"description", "Note: short"}], "# Hello\n")
      "---\nname: hello\ndescription: 'Note: short'\n---\n# Hello\n"
  """
  @spec write(%{optional(String.t()) => value()} | [{String.t(), value()}], String.t()) ::
          String.t()
  def write(data, body) when is_map(data) and not is_struct(data) and is_binary(body) do
    write(Enum.sort_by(data, &elem(&1, 0)), body)
  end

  def write(pairs, body) when is_list(pairs) and is_binary(body) do
    case Native.frontmatter_write(pairs, body) do
      {:ok, document} ->
        document

      {:error, {:unsupported, term}} ->
        raise ArgumentError,
              "frontmatter holds nil, booleans, 64-bit integers, floats, UTF-8 strings, lists and maps with string keys, " <>
                "up to 64 deep, got: " <> inspect(term, limit: 5)
    end
  end
end
