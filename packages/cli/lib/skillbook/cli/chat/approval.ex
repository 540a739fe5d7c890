defmodule Skillbook.CLI.Chat.Approval do
  @moduledoc false
  # Asks the user before a command with side effects runs (`chat --ask`), and before one of a page
  # with `approval: required` does. The process that runs the command asks, and the process that
  # reads lines answers. Commands answered with `always` are in an ETS table and are not asked for
  # again.

  alias Skillbook.CLI.Shell.Input
  alias Skillbook.CLI.Terminal
  alias Skillbook.Reply.Placeholder
  alias Skillbook.Request
  alias Skillbook.Run.Policy

  @enforce_keys [:terminal, :reader, :allowed]
  defstruct [:terminal, :reader, :allowed]

  @prompt "Run it? y/n/always/later/why> "

  @doc "An approval for the conversation of the calling process, which reads the lines."
  def new(terminal),
    do: %__MODULE__{terminal: terminal, reader: self(), allowed: :ets.new(__MODULE__, [:public])}

  @doc "The `:ask` callback of `Skillbook.run/3`."
  def ask(%{allowed: allowed} = approval, %Request{} = request) do
    if :ets.member(allowed, key(request)), do: :allow, else: Input.ask(approval.reader, request)
  end

  @doc "The answer to a request, for `Skillbook.CLI.Shell.Input.run/3`."
  def answer(approval, %Request{} = request, input) do
    put(approval, input, :bright, request.written.raw)

    for {placeholder, value} <- Placeholder.values(request.written),
        do: put(approval, input, :bright, "#{placeholder} is #{value}")

    read_answer(approval, request, input)
  end

  defp read_answer(approval, request, input) do
    unless Input.interactive?(input), do: IO.write(:stderr, ["  ", @prompt])

    case Input.answer(input, if(Input.interactive?(input), do: @prompt, else: "")) do
      {:line, line, input} ->
        unless Input.interactive?(input), do: IO.puts(:stderr, line)
        answer_word(approval, request, String.split(line, ~r/\s+/, parts: 2, trim: true), input)

      {:eof, input} ->
        {:ok, if(Policy.approval?(request), do: :pending, else: :deny), input}

      {:interrupt, input} ->
        {:interrupt, input}
    end
  end

  defp answer_word(_approval, _request, [word], input) when word in ["y", "yes"],
    do: {:ok, :allow, input}

  defp answer_word(_approval, _request, [word], input) when word in ["n", "no"],
    do: {:ok, :deny, input}

  defp answer_word(_approval, _request, [word, text], input) when word in ["n", "no"],
    do: {:ok, {:deny, text}, input}

  # A page with `approval: required` needs one for each call.
  defp answer_word(approval, request, ["always"], input) do
    unless Policy.approval?(request), do: :ets.insert(approval.allowed, {key(request)})
    {:ok, :allow, input}
  end

  defp answer_word(_approval, _request, ["later"], input), do: {:ok, :pending, input}

  defp answer_word(approval, %{entry: entry} = request, ["why"], input) do
    put(
      approval,
      input,
      :faint,
      "#{entry.name} has side effects: #{entry.description}\nIts page is #{entry.path}"
    )

    read_answer(approval, request, input)
  end

  defp answer_word(approval, request, _words, input) do
    if Input.interactive?(input) do
      put(approval, input, :faint, """
      y       run the command
      n       do not run it; the model gets the text after n, for example: n do it tomorrow
      always  run it, and do not ask for #{request.entry.name} again
      later   do not run it now; it waits for `skillbook approvals`
      why     show its description\
      """)

      read_answer(approval, request, input)
    else
      {:ok, :deny, input}
    end
  end

  # After a reload, the same name may be another page or handler, so it is asked for again.
  defp key(%{entry: entry, profile: profile}),
    do: {profile.id, entry.name, entry.path, entry.handler}

  # Not truncated, because the user consents to all of it. Control characters are escaped.
  defp put(approval, input, style, text) do
    for line <- String.split(Terminal.safe(text), "\n") do
      line = ["  ", Terminal.style(approval.terminal, style, line)]
      if Input.interactive?(input), do: Terminal.put(line), else: IO.puts(:stderr, line)
    end
  end
end
