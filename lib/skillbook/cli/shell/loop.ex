defmodule Skillbook.CLI.Shell.Loop do
  @moduledoc false
  # Reads lines and has them run, one after the other: what `shell` and `chat` share. A line that begins with a colon is a word
  # for the loop itself.

  alias Skillbook.CLI.Shell.{Completion, Input}
  alias Skillbook.CLI.Terminal

  @typep state :: map()

  @doc "What the lines so far are: nothing, a part of something, or something to run."
  @callback read(text :: String.t()) ::
              :blank | {:more, pending :: String.t()} | {:run, String.t()}
  @callback run(state(), text :: String.t()) :: state()
  @callback word(state(), word :: String.t(), argument :: String.t() | nil) :: state()
  @callback view(state()) :: Skillbook.View.t()

  @doc "What Tab offers, as `Completion.complete/2` takes it; it is asked when it is pressed."
  @callback known(state()) :: %{names: [String.t()], flags: (String.t() -> [String.t()])}

  @doc """
  Runs until the input ends, and gives the exit status.

  The state has `:module`, with the callbacks; `:book` and `:options`; `:name`, which the prompt shows; `:greeting`; `:help`;
  `:words`, those beside the four that are here, each with what it takes or `nil`; `:unfinished`, what an input that ends
  too early was; and what else the callbacks need.
  """
  @spec start(state()) :: 0 | 1
  def start(state) do
    more = %{
      terminal: Terminal.new(state.options.color),
      input: Input.open(),
      pending: "",
      failed: false
    }

    words = [
      {":help", nil},
      {":quit", nil},
      {":prompt", nil},
      {":profile", "a name"} | state.words
    ]

    if Input.person?(more.input), do: Terminal.put(state.greeting)
    loop(Map.merge(%{state | words: words}, more))
  end

  defp loop(%{module: module} = state) do
    input = Input.completing(state.input, &Completion.complete(&1, module.known(state)))

    case Input.line(input, prompt(state)) do
      {:line, line, input} -> line(%{state | input: input}, state.pending <> line)
      {:interrupt, input} -> loop(%{state | input: input, pending: ""})
      {:eof, _input} -> finish(state)
    end
  end

  defp prompt(%{name: name, options: options} = state) do
    cond do
      not Input.person?(state.input) -> ""
      state.pending != "" -> String.pad_leading("...> ", String.length(name) + 2)
      options.profile == "default" -> "#{name}> "
      true -> "#{name} (#{options.profile})> "
    end
  end

  defp finish(%{pending: ""} = state),
    do: if(state.failed and not Input.person?(state.input), do: 1, else: 0)

  defp finish(%{pending: pending} = state) do
    Terminal.complain(
      "the input ended inside #{state.unfinished}:\n#{String.trim_trailing(pending)}"
    )

    1
  end

  defp line(%{module: module} = state, text) do
    state = %{state | pending: ""}

    if String.starts_with?(String.trim(text), ":") do
      [word | argument] = text |> String.trim() |> String.split(~r/\s+/, parts: 2)

      if word in [":quit", ":q", ":exit"],
        do: finish(state),
        else: loop(word(state, word, List.first(argument)))
    else
      case module.read(text) do
        :blank -> loop(state)
        {:more, pending} -> loop(%{state | pending: pending})
        {:run, text} -> loop(module.run(state, text))
      end
    end
  end

  defp word(%{module: module} = state, word, argument) do
    case List.keyfind(state.words, word, 0) do
      nil ->
        wrong(state, "unknown word `#{word}`; the words are #{Enum.join(words(state), ", ")}")

      {_, nil} when argument != nil ->
        wrong(state, "too many words: #{word} #{argument}")

      {":profile", _} ->
        profile(state, argument)

      {_, takes} when takes != nil and argument == nil ->
        wrong(state, "#{word} expects #{takes}")

      {":help", _} ->
        put(state, String.trim_trailing(state.help))

      {":prompt", _} ->
        put(state, Terminal.safe(state.terminal, Skillbook.prompt(module.view(state), [])))

      _ ->
        module.word(state, word, argument)
    end
  end

  @doc "The words that a line may begin with."
  @spec words(state()) :: [String.t()]
  def words(state), do: Enum.map(state.words, &elem(&1, 0))

  defp profile(%{options: %{profile: name}} = state, nil), do: put(state, name)
  defp profile(%{options: %{profile: name}} = state, name), do: state

  defp profile(%{module: module} = state, name),
    do: module.word(put_in(state.options.profile, name), ":profile", name)

  defp put(state, text) do
    Terminal.put(text)
    state
  end

  @doc "Says what is wrong; from a pipe it shows in the exit status."
  @spec wrong(state(), IO.chardata()) :: state()
  def wrong(state, message) do
    Terminal.complain(message)
    %{state | failed: true}
  end

  @doc "Goes on after `Input.run/3`, with its value if it came to its end."
  @spec ran(state(), tuple(), (state(), term() -> state())) :: state()
  def ran(state, {:ok, value, input}, done), do: done.(%{state | input: input}, value)

  def ran(state, {:interrupt, input}, _done),
    do: %{put(state, "stopped") | input: input, failed: true}

  def ran(state, {:crash, reason, input}, _done),
    do: wrong(%{state | input: input}, ["crashed: ", Exception.format_exit(reason)])
end
