defmodule Skillbook.CLI.Prompt do
  @moduledoc false
  # `skillbook prompt`: prints the result of `Skillbook.prompt/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Prompt

  @impl true
  def switches do
    [
      format: {:one_of, Prompt.formats()},
      section: {:some_of, Prompt.sections()},
      max_tokens: {:number, 0, nil},
      max_chars: {:number, 0, nil},
      message: :keep
    ]
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`prompt` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print the system prompt for a model"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] prompt [--format FORMAT | --section SECTION ...]
           [--max-tokens N] [--max-chars N] [--message TEXT]

    Prints the sections of the system prompt that list the skills of the profile and explain their
    use.

    Options:
      --format FORMAT   #{list(Prompt.formats())}
      --section NAME    print only this section; repeatable. The sections are
                        #{list(Prompt.sections(), ",\n                    ")}
      --max-tokens N    maximum tokens, estimated; the last line counts the entries left out
      --max-chars N     maximum characters
      --message TEXT    a message of the user, repeatable; if entries are left out, those nearest
                        to it stay

    Examples:
      skillbook prompt
      skillbook --dir skills --grant internal prompt
      skillbook prompt --format xml --max-tokens 2000
      skillbook prompt --max-tokens 500 --message "Remember that I like tea"
      skillbook prompt --section rules --section domains
    """
  end

  @impl true
  def run(options) do
    with_flags(options, "prompt", fn flags ->
      Session.with_book(options, :read, fn book ->
        text = Skillbook.prompt(Session.view(book, options), flags)
        Terminal.put(Terminal.safe(text))
      end)
    end)
  end

  @doc "Calls the function with the options of `Skillbook.prompt/2` for the subcommand's flags."
  def with_flags(%{flags: flags}, command, fun) do
    sections = Keyword.get_values(flags, :section)
    messages = for text <- Keyword.get_values(flags, :message), do: %{role: :user, content: text}
    rest = [messages: messages] ++ Keyword.take(flags, [:max_tokens, :max_chars])

    case {flags[:format], sections} do
      {nil, []} ->
        fun.(rest)

      {format, []} ->
        fun.([{:format, format} | rest])

      {nil, sections} ->
        fun.([{:sections, sections} | rest])

      _both ->
        Terminal.usage_error("--section and --format exclude each other", "#{command} --help")
    end
  end

  defp list(names, separator \\ ", "),
    do: names |> Enum.chunk_every(5) |> Enum.map_join(separator, &Enum.join(&1, ", "))
end
