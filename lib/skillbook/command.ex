defmodule Skillbook.Command do
  @moduledoc """
  A command as a model wrote it: a name, flags and arguments.

  Words are split much as a shell does, and nothing is ever expanded, substituted or run. `docs/commands.md` has
  all the rules.

  ## Fields

    * `:name` - the first word
    * `:flags` - a map from names to `true` (no value), a string, or a list of strings (several values, or the flag
      several times). Where the command was written as one JSON object, its members are the flags, as they are
    * `:args` - the words before the first flag and after a bare `--`, in order
    * `:raw` - the command as it was written
    * `:placeholders` - the values that stand for other commands' results, which a handler and an `:ask` callback find filled
      in: for each the name of its flag or `:args`, which of the values there it is, from 0, and the number of the command
      or `:last`
    * `:help` - whether `--help` or `-h` stands on the line; such a command is never run
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
          help: boolean()
        }

  @enforce_keys [:name, :raw]
  defstruct [:name, :raw, flags: %{}, args: [], placeholders: [], help: false]

  @doc """
  Splits a command into words.

      iex> Skillbook.Command.tokenize(~S(email.send --to bob@co.com --subject "Q1 Report" --body 'all of it'))
      {:ok, ["email.send", "--to", "bob@co.com", "--subject", "Q1 Report", "--body", "all of it"]}

      iex> Skillbook.Command.tokenize("notes.add what's up")
      {:ok, ["notes.add", "what's", "up"]}
  """
  @spec tokenize(String.t()) :: {:ok, [String.t()]} | {:error, CommandError.t()}
  def tokenize(line) when is_binary(line), do: Native.tokenize(line)

  @doc """
  Reads a command.

      iex> {:ok, command} = Skillbook.Command.parse("tasks.search --tags Q1 backend --overdue --limit=5")
      iex> command.name
      "tasks.search"
      iex> command.flags
      %{"tags" => ["Q1", "backend"], "overdue" => true, "limit" => "5"}

      iex> {:ok, command} = Skillbook.Command.parse(~S(tasks.create {"title": "Call Bob", "tags": ["q1"]}))
      iex> command.flags
      %{"title" => "Call Bob", "tags" => ["q1"]}

      iex> Skillbook.Command.parse!(~S(email.send {2} --body {last} --subject "{1}")).placeholders
      [{:args, 0, 2}, {"body", 0, :last}]
  """
  @spec parse(String.t()) :: {:ok, t()} | {:error, CommandError.t()}
  def parse(line) when is_binary(line) do
    case Native.parse_command(line) do
      {:error, error} -> {:error, error}
      values -> {:ok, new(values)}
    end
  end

  @doc false
  # From the values that the native library gives: a map of known keys is built faster here.
  @spec new(tuple()) :: t()
  def new({name, raw, flags, args, placeholders, help}) do
    %__MODULE__{
      name: name,
      raw: raw,
      flags: flags,
      args: args,
      placeholders: placeholders,
      help: help
    }
  end

  @doc ~S"""
  The line that is read as this command: the arguments, then the flags in the order of their names, quoted where they need it.

  Members of a JSON object that are no texts stand in it as JSON.

      iex> Skillbook.Command.line(%Skillbook.Command{name: "notes.add", raw: "", args: ["a b"], flags: %{"to" => "bob@co.com", "now" => true}})
      ~S(notes.add "a b" --now --to bob@co.com)
  """
  @spec line(t()) :: String.t()
  def line(%__MODULE__{name: name, args: args, flags: flags}) do
    flags =
      for {flag, given} <- Enum.sort(flags), do: Enum.join(["--" <> flag | words(given)], " ")

    Enum.join([word(name) | separated(Enum.map(args, &word/1), args, flags)] ++ flags, " ")
  end

  # An object that is the only word stands for flags, in quotes too.
  defp separated(words, [arg], []),
    do: if(arg =~ ~r/\A\s*{\s*["}]/, do: ["--" | words], else: words)

  defp separated(words, _args, _flags), do: words

  defp words(true), do: []
  defp words(values) when is_list(values), do: Enum.map(values, &word/1)
  defp words(value), do: [word(value)]

  @doc false
  # A value as a word of a line; one that is no text, as JSON.
  @spec word(value()) :: String.t()
  def word(text) when is_binary(text), do: Native.quote_word(text)
  def word(other), do: other |> JSON.encode() |> Native.quote_word()

  @doc """
  As `parse/1`, but raises the error.

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
