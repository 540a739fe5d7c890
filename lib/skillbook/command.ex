defmodule Skillbook.Command do
  @moduledoc """
  Parses a command: a name, flags and arguments.

  Words are split as in a shell, but nothing is expanded, substituted or run. [The command
  language](docs/commands.md) has all rules.

      iex> command = Skillbook.Command.parse!(~S(tasks.create --title "Call Bob" --tags q1 work))
      iex> {command.name, command.flags}
      {"tasks.create", %{"title" => "Call Bob", "tags" => ["q1", "work"]}}

  ## Fields

    * `:name` - the first word
    * `:flags` - a map from names to `true` (no value), a string, or a list of strings (several
      values, or a repeated flag). For a command with a JSON object, the members of the object
    * `:args` - the words before the first flag and after a bare `--`, in order
    * `:raw` - the command as written
    * `:placeholders` - the positions of placeholders such as `{1}` and `{last}`, as `{flag or
      :args, index, number or :last}`. Handlers and `:ask` callbacks get the values filled in
    * `:json` - whether the flags are the members of a JSON object
    * `:help` - whether the line has `--help` or `-h`; such a command is never run
  """

  alias Skillbook.Support.JSON
  alias Skillbook.{CommandError, Native}

  @type value :: true | String.t() | [String.t()] | number() | boolean() | nil | map() | list()
  @type t :: %__MODULE__{
          name: String.t(),
          flags: %{optional(String.t()) => value()},
          args: [String.t()],
          raw: String.t(),
          placeholders: [{String.t() | :args, non_neg_integer(), non_neg_integer() | :last}],
          json: boolean(),
          help: boolean()
        }

  @enforce_keys [:name, :raw]
  defstruct [:name, :raw, flags: %{}, args: [], placeholders: [], json: false, help: false]

  @doc """
  Splits a command into words.

      iex> Skillbook.Command.tokenize(~S(email.send --to bob@co.com --body 'all of it'))
      {:ok, ["email.send", "--to", "bob@co.com", "--body", "all of it"]}

      iex> Skillbook.Command.tokenize("notes.add what's up")
      {:ok, ["notes.add", "what's", "up"]}
  """
  @spec tokenize(String.t()) :: {:ok, [String.t()]} | {:error, CommandError.t()}
  def tokenize(line) when is_binary(line), do: Native.tokenize(line)

  @doc """
  Parses a command.

      iex> {:ok, command} = Skillbook.Command.parse("tasks.search --tags Q1 backend --limit=5")
      iex> command.name
      "tasks.search"
      iex> command.flags
      %{"tags" => ["Q1", "backend"], "limit" => "5"}

      iex> line = ~S(tasks.create {"title": "x", "tags": ["q1"]})
      iex> {:ok, command} = Skillbook.Command.parse(line)
      iex> command.flags
      %{"title" => "x", "tags" => ["q1"]}

      iex> {:ok, command} = Skillbook.Command.parse(~S(email.send {2} --body {last}))
      iex> command.placeholders
      [{:args, 0, 2}, {"body", 0, :last}]

      iex> {:error, error} = Skillbook.Command.parse(~S(notes.add "Buy milk))
      iex> error.kind
      :unclosed_quote
  """
  @spec parse(String.t()) :: {:ok, t()} | {:error, CommandError.t()}
  def parse(line) when is_binary(line) do
    case Native.parse_command(line) do
      {:error, error} -> {:error, error}
      values -> {:ok, new(values)}
    end
  end

  @doc false
  # Builds the struct from the tuple of the native library, which is faster than to build it
  # there.
  @spec new(tuple()) :: t()
  def new({name, raw, flags, args, placeholders, help, json}) do
    %__MODULE__{
      name: name,
      raw: raw,
      flags: flags,
      args: args,
      placeholders: placeholders,
      json: json,
      help: help
    }
  end

  @doc ~S"""
  Returns a line that parses to this command: the name, the arguments, and the flags by name, with
  quotes where needed.

  Values that are not text are written as JSON.

      iex> command = %Skillbook.Command{name: "notes.add", raw: "", args: ["a b"]}
      iex> Skillbook.Command.line(%{command | flags: %{"to" => "bob@co.com", "now" => true}})
      ~S(notes.add "a b" --now --to bob@co.com)
  """
  @spec line(t()) :: String.t()
  def line(%__MODULE__{name: name, args: args, flags: flags}) do
    flags =
      for {flag, given} <- Enum.sort(flags), do: Enum.join(["--" <> flag | words(given)], " ")

    Enum.join([word(name) | separated(Enum.map(args, &word/1), args, flags)] ++ flags, " ")
  end

  # A JSON object as the only word would be read as the flags, even in quotes.
  defp separated(words, [arg], []),
    do: if(arg =~ ~r/\A\s*{\s*["}]/, do: ["--" | words], else: words)

  defp separated(words, _args, _flags), do: words

  defp words(true), do: []
  defp words(values) when is_list(values), do: Enum.map(values, &word/1)
  defp words(value), do: [word(value)]

  @doc false
  # Writes a value as a word of a line; values that are not text, as JSON.
  @spec word(value()) :: String.t()
  def word(text) when is_binary(text), do: Native.quote_word(text)
  def word(other), do: other |> JSON.encode() |> Native.quote_word()

  @doc """
  Like `parse/1`, but raises the error.

      iex> Skillbook.Command.parse!("get_skill: email.send").args
      ["email.send"]
  """
  @spec parse!(String.t()) :: t()
  def parse!(line) do
    case parse(line) do
      {:ok, command} -> command
      {:error, error} -> raise error
    end
  end
end
