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
end
