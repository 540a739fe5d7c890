defmodule Skillbook.CLI.Shell.Loop do
  @moduledoc false
  # The read-eval-print loop of `shell` and `chat`. A line that begins with a colon is a colon
  # command, for example `:help`; other lines are passed to the callback module.

  alias Skillbook.CLI.Shell.{Completion, Input}
  alias Skillbook.CLI.Terminal

  @typep state :: map()

  @doc "Decides whether the lines so far are blank, incomplete, ready to run, or end the loop."
  @callback read(text :: String.t()) ::
              :blank | :quit | {:more, pending :: String.t()} | {:run, String.t()}

  @doc "Runs the lines."
  @callback run(state(), text :: String.t()) :: state()

  @doc "Runs a colon command of the module, or `:profile` with a new name."
  @callback colon_command(state(), name :: String.t(), argument :: String.t() | nil) :: state()

  @doc "The view that `:prompt` shows."
  @callback view(state()) :: Skillbook.View.t()

  @doc "The words for `Completion.complete/2`. Called when Tab is pressed."
  @callback completions(state()) :: %{names: [String.t()], flags: (String.t() -> [String.t()])}

  @doc """
  Runs until the input ends, and returns the exit status.

  The state has

    * `:module` - the callback module
    * `:book`, `:options` - the book and the `Skillbook.CLI.Arguments`
    * `:name`, `:greeting`, `:help` - texts for the prompt, the start and `:help`
    * `:colon_commands` - additional ones, each with its argument (`"a file"`) or `nil`
    * `:unfinished` - for the error if the input ends too early: `"a command, which did not run"`

  and anything else that the callbacks need.
  """
  @spec start(state()) :: 0 | 1
  def start(state) do
    more = %{
      terminal: Terminal.new(state.options.color),
      input: Input.open(),
      pending: "",
      failed: false
    }

    colon_commands = [
      {":help", nil},
      {":quit", nil},
      {":prompt", nil},
      {":profile", "a name"} | state.colon_commands
    ]

    if Input.interactive?(more.input), do: Terminal.put(state.greeting)
    loop(Map.merge(%{state | colon_commands: colon_commands}, more))
  end

  defp loop(%{module: module} = state) do
    input = Input.set_completion(state.input, &Completion.complete(&1, module.completions(state)))

    case Input.line(input, prompt(state)) do
      {:line, line, input} -> line(%{state | input: input}, state.pending <> line)
      {:interrupt, input} -> loop(%{state | input: input, pending: ""})
      {:eof, _input} -> finish(state)
    end
  end

  defp prompt(%{name: name, options: options} = state) do
    cond do
      not Input.interactive?(state.input) -> ""
      state.pending != "" -> String.pad_leading("...> ", String.length(name) + 2)
      options.profile == "default" -> "#{name}> "
      true -> "#{name} (#{options.profile})> "
    end
  end

  defp finish(%{pending: ""} = state),
    do: if(state.failed and not Input.interactive?(state.input), do: 1, else: 0)

  defp finish(%{pending: pending} = state) do
    Terminal.complain(
      "the input ended inside #{state.unfinished}:\n#{String.trim_trailing(pending)}"
    )

    1
  end

  defp line(%{module: module} = state, text) do
    state = %{state | pending: ""}

    if String.starts_with?(String.trim(text), ":") do
      [name | argument] = text |> String.trim() |> String.split(~r/\s+/, parts: 2)

      if name in [":quit", ":q", ":exit"],
        do: finish(state),
        else: loop(colon_command(state, name, List.first(argument)))
    else
      case module.read(text) do
        :blank -> loop(state)
        {:more, pending} -> loop(%{state | pending: pending})
        {:run, text} -> loop(module.run(state, text))
        :quit -> finish(state)
      end
    end
  end

  defp colon_command(%{module: module} = state, name, argument) do
    case List.keyfind(state.colon_commands, name, 0) do
      nil ->
        error(state, [
          "unknown colon command `#{name}`; expected one of ",
          Enum.join(colon_commands(state), ", ")
        ])

      {_, nil} when argument != nil ->
        error(state, "#{name} takes no argument, got: #{argument}")

      {":profile", _} ->
        profile(state, argument)

      {_, expected} when expected != nil and argument == nil ->
        error(state, "#{name} expects #{expected}")

      {":help", _} ->
        put(state, String.trim_trailing(state.help))

      {":prompt", _} ->
        put(state, Terminal.safe(Skillbook.prompt(module.view(state), [])))

      _ ->
        module.colon_command(state, name, argument)
    end
  end

  @doc "The names of the colon commands."
  @spec colon_commands(state()) :: [String.t()]
  def colon_commands(state), do: Enum.map(state.colon_commands, &elem(&1, 0))

  defp profile(%{options: %{profile: name}} = state, nil), do: put(state, name)
  defp profile(%{options: %{profile: name}} = state, name), do: state

  defp profile(%{module: module} = state, name),
    do: module.colon_command(put_in(state.options.profile, name), ":profile", name)

  defp put(state, text) do
    Terminal.put(text)
    state
  end

  @doc "Prints an error. From a pipe, the exit status will be 1."
  @spec error(state(), IO.chardata()) :: state()
  def error(state, message) do
    Terminal.complain(message)
    %{state | failed: true}
  end

  @doc "Handles the result of `Input.run/3`: calls `done` with a value, prints a crash."
  @spec handle_outcome(state(), tuple(), (state(), term() -> state())) :: state()
  def handle_outcome(state, {:ok, value, input}, done), do: done.(%{state | input: input}, value)

  def handle_outcome(state, {:interrupt, input}, _done),
    do: %{put(state, "stopped") | input: input, failed: true}

  def handle_outcome(state, {:crash, reason, input}, _done),
    do: error(%{state | input: input}, ["crashed: ", Exception.format_exit(reason)])
end
