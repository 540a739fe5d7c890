defmodule Skillbook.CLI.Chat.Approval do
  @moduledoc false
  # Asks whoever sits there before a command runs that changes something. The command is asked for in the process that runs
  # it and answered in the one that reads lines; what is always allowed stands in a table, so that nobody is asked for it.

  alias Skillbook.CLI.Shell.Input
  alias Skillbook.CLI.Terminal
  alias Skillbook.Reply.Placeholder
  alias Skillbook.Request

  @enforce_keys [:terminal, :reader, :allowed]
  defstruct [:terminal, :reader, :allowed]

  @prompt "  Run it? y/n/always/why> "

  @doc "For the conversation of the calling process, which reads the lines."
  def new(terminal),
    do: %__MODULE__{terminal: terminal, reader: self(), allowed: :ets.new(__MODULE__, [:public])}

  @doc "The `:ask` callback of `Skillbook.run/3`."
  def ask(%{allowed: allowed} = consent, %Request{} = request) do
    if :ets.member(allowed, key(request)), do: :allow, else: Input.ask(consent.reader, request)
  end

  @doc "The answer to a request, for `Skillbook.CLI.Shell.Input.run/3`."
  def answer(consent, %Request{} = request, input) do
    put(consent, input, :bright, request.command.raw)

    for {placeholder, value} <- Placeholder.values(request.command),
        do: put(consent, input, :bright, "#{placeholder} is #{value}")

    answered(consent, request, input)
  end

  defp answered(consent, request, input) do
    unless Input.person?(input), do: IO.write(:stderr, @prompt)

    case Input.answer(input, if(Input.person?(input), do: @prompt, else: "")) do
      {:line, line, input} ->
        unless Input.person?(input), do: IO.puts(:stderr, line)
        word(consent, request, String.split(line, ~r/\s+/, parts: 2, trim: true), input)

      {:eof, input} ->
        {:ok, :deny, input}

      {:interrupt, input} ->
        {:interrupt, input}
    end
  end

  defp word(_consent, _request, [word], input) when word in ["y", "yes"], do: {:ok, :allow, input}
  defp word(_consent, _request, [word], input) when word in ["n", "no"], do: {:ok, :deny, input}

  defp word(_consent, _request, [word, text], input) when word in ["n", "no"],
    do: {:ok, {:deny, text}, input}

  defp word(consent, request, ["always"], input) do
    :ets.insert(consent.allowed, {key(request)})
    {:ok, :allow, input}
  end

  defp word(consent, %{entry: entry} = request, ["why"], input) do
    put(
      consent,
      input,
      :faint,
      "#{entry.name} changes something: #{entry.description}\nIts page is #{entry.path}"
    )

    answered(consent, request, input)
  end

  defp word(consent, request, _words, input) do
    if Input.person?(input) do
      put(consent, input, :faint, """
      y       run it
      n       do not; text behind it is told to the model, as in: n tomorrow will do
      always  run it, and from now on each #{request.entry.name} without asking
      why     what it is\
      """)

      answered(consent, request, input)
    else
      {:ok, :deny, input}
    end
  end

  # What else the same name may stand for after a reload is asked for again.
  defp key(%{entry: entry, profile: profile}),
    do: {profile.id, entry.name, entry.path, entry.handler}

  # All of it, for it is what somebody agrees to, and nothing in it that drives a terminal.
  defp put(consent, input, style, text) do
    for line <- String.split(Terminal.safe(%Terminal{width: 80}, text), "\n") do
      line = ["  ", Terminal.style(consent.terminal, style, line)]
      if Input.person?(input), do: Terminal.put(line), else: IO.puts(:stderr, line)
    end
  end
end
