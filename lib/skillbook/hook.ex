defmodule Skillbook.Hook do
  @moduledoc ~S"""
  Runs code of the application around the turns of a user, calls of a model and commands: to
  check, change, refuse, ask, or record them.

      {Skillbook, name: MyApp.Skills, hooks: [MyApp.Guard, {MyApp.Audit, on_error: :ignore}]}

  The option `:hooks` of a book, or of a profile, is a list of modules with some of the callbacks
  below, or of `{module, options}`. Those of the book come first. Before something they run in the
  order of the list, and each gets what the one before it has changed; after it in the opposite
  order.

  Each call runs in a process of its own. If it crashes, takes longer than its time limit or
  returns something else, the failure is logged, and what it should have checked is refused: the
  turn or the command does not run, or its text is withheld. [Hooks](docs/hooks.md) has examples.

  ## Options

    * `:timeout` (milliseconds) - the time limit of each call. Defaults to `5_000`
    * `:on_error` (`:refuse` or `:ignore`) - whether a failure refuses, or is only logged.
      Defaults to `:refuse`

  Others are passed to the callbacks as their second argument.

  ## Events

  The first argument is a map. All have the name of the book as `:book`, the `:profile` and the
  `:assigns`; those of a turn or a model also the id of the run as `:run`, its `:depth`, the
  number of the model's call as `:turn`, and `:usage` and `:cost` so far.

  ## Examples

      iex> defmodule NoSecrets do
      ...>   use Skillbook.Hook
      ...>
      ...>   @impl true
      ...>   def after_command(%{text: text}, _options),
      ...>     do: {:cont, String.replace(text, ~r/\bsk-\w+/, "[key]")}
      ...> end
      iex> options = [builtins: ["memory"], store: ":memory:", hooks: [NoSecrets]]
      iex> {:ok, _pid} = Skillbook.start_link([name: :hook_example] ++ options)
      iex> reply = "```cmd\nmemory.save --content \"The key is sk-123\"\nmemory.search key\n```"
      iex> to_string(Skillbook.run(:hook_example, reply)) =~ "The key is [key]"
      true
  """

  require Logger

  alias Skillbook.Run.Worker
  alias Skillbook.Support.{Options, Outline}
  alias Skillbook.{Book, View}

  @type event :: map()

  @doc """
  Before a turn of the user: a run of `Skillbook.Agent`, with the input in `:input`, text or a
  list of texts, images, files and audio. `{:cont, input}` replaces it; with `{:refuse, text}` no
  model is called, and the text is the answer.
  """
  @callback before_turn(event(), keyword()) ::
              :cont | {:cont, String.t() | [String.t() | struct()]} | {:refuse, String.t()}

  @doc """
  After a turn, with its `Skillbook.Agent.Result` in `:result` and its text in `:text`.
  `{:cont, text}` replaces the text of the result.
  """
  @callback after_turn(event(), keyword()) :: :cont | {:cont, String.t()}

  @doc """
  Before a call of the model, with its `:messages`. `{:cont, messages}` sends others; the
  conversation keeps those that it has. `{:refuse, text}` ends the run with this answer.
  """
  @callback before_model(event(), keyword()) ::
              :cont | {:cont, [map()]} | {:refuse, String.t()}

  @doc """
  After a call of the model, with the `:text` of its reply. `{:cont, text}` replaces it, before
  its commands run. The text is held back until then, so that nobody reads it before.
  """
  @callback after_model(event(), keyword()) :: :cont | {:cont, String.t()}

  @doc """
  Before a command runs, with its `:entry`, its `:flags` as its handler gets them, and the
  `Skillbook.Context` in `:context`. `{:cont, flags}` replaces the flags, which are checked again;
  `{:refuse, text}` is an error for the model; `:ask` asks as for a page with `approval:
  required`. The profile's `:writes` decides afterwards, as without hooks.
  """
  @callback before_command(event(), keyword()) ::
              :cont | {:cont, map()} | {:refuse, String.t()} | :ask

  @doc """
  After a command, with its `Skillbook.Result` in `:result` and the text for the model in `:text`,
  also of an error. `{:cont, text}` replaces the text. `:data` of the result stays.
  """
  @callback after_command(event(), keyword()) :: :cont | {:cont, String.t()}

  @optional_callbacks before_turn: 2,
                      after_turn: 2,
                      before_model: 2,
                      after_model: 2,
                      before_command: 2,
                      after_command: 2

  @callbacks [
    :before_turn,
    :after_turn,
    :before_model,
    :after_model,
    :before_command,
    :after_command
  ]

  @timeout 5_000
  # For the model, and for the user where no model is asked.
  @refused "A check of the application failed, so this was not done. Tell the user."
  @unanswered "I cannot answer: a check of the application failed. Please try again later."
  @withheld "(A check of the application failed, so this text is withheld.)"

  @doc false
  defmacro __using__(_options) do
    quote do
      @behaviour Skillbook.Hook
    end
  end

  @doc false
  @spec valid?(term()) :: boolean()
  def valid?(hooks) when is_list(hooks), do: Enum.all?(hooks, &hook?/1)
  def valid?(_other), do: false

  defp hook?({module, options}) do
    Keyword.keyword?(options) and hook?(module) and
      Options.milliseconds?(Keyword.get(options, :timeout, @timeout)) and
      Keyword.get(options, :on_error, :refuse) in [:refuse, :ignore]
  end

  defp hook?(module),
    do:
      is_atom(module) and Code.ensure_loaded?(module) and
        Enum.any?(@callbacks, &function_exported?(module, &1, 2))

  @doc false
  # The hooks of a view: those of its book, then those of its profile.
  @spec of(View.t()) :: [module() | {module(), keyword()}]
  def of(%View{book: name, profile: profile}),
    do: ((name && Book.find(name)) || %{hooks: []}).hooks ++ profile.hooks

  @doc false
  @spec any?([module() | {module(), keyword()}], atom()) :: boolean()
  def any?(hooks, callback), do: Enum.any?(hooks, &exports?(&1, callback))

  defp exports?({module, _options}, callback), do: exports?(module, callback)
  defp exports?(module, callback), do: function_exported?(module, callback, 2)

  @doc false
  # Runs a callback of all hooks. `key` is that of the value that they may change. `:ask` is only
  # for commands.
  @spec before([module() | {module(), keyword()}], atom(), event(), atom()) ::
          {:cont | :ask, event()} | {:refuse, String.t()}
  def before(hooks, callback, event, key) do
    Enum.reduce_while(hooks, {:cont, event}, fn hook, {how, event} ->
      case call(hook, callback, event) do
        :cont ->
          {:cont, {how, event}}

        :ask when callback == :before_command ->
          {:cont, {:ask, event}}

        {:cont, value} ->
          if value?(key, value),
            do: {:cont, {how, Map.put(event, key, value)}},
            else: refused(bad(hook, callback, {:cont, value}), callback, {how, event})

        {:refuse, text} when is_binary(text) ->
          {:halt, {:refuse, text}}

        {:failed, _how} = failed ->
          refused(failed, callback, {how, event})

        other ->
          refused(bad(hook, callback, other), callback, {how, event})
      end
    end)
  end

  defp refused({:failed, :ignore}, _callback, before), do: {:cont, before}

  defp refused({:failed, :refuse}, callback, _before) do
    text = if callback == :before_command, do: @refused, else: @unanswered
    {:halt, {:refuse, text}}
  end

  @doc false
  # The same after something, whose text hooks may change.
  @spec after_text([module() | {module(), keyword()}], atom(), event()) :: String.t()
  def after_text(hooks, callback, event) do
    hooks
    |> Enum.reverse()
    |> Enum.reduce(event, fn hook, event ->
      case call(hook, callback, event) do
        :cont ->
          event

        {:cont, text} when is_binary(text) ->
          if String.valid?(text),
            do: %{event | text: text},
            else: withheld(bad(hook, callback, {:cont, text}), event)

        {:failed, _how} = failed ->
          withheld(failed, event)

        other ->
          withheld(bad(hook, callback, other), event)
      end
    end)
    |> Map.fetch!(:text)
  end

  defp withheld({:failed, :ignore}, event), do: event
  defp withheld({:failed, :refuse}, event), do: %{event | text: @withheld}

  defp value?(:input, [_ | _] = parts),
    do: Enum.all?(parts, &(is_struct(&1) or value?(:input, &1)))

  defp value?(:input, text), do: is_binary(text) and String.valid?(text)
  defp value?(:flags, flags), do: is_map(flags) and not is_struct(flags)

  defp value?(:messages, messages),
    do: is_list(messages) and Enum.all?(messages, &match?(%{role: _, content: _}, &1))

  defp call({module, options}, callback, event) do
    if function_exported?(module, callback, 2) do
      {own, options} = Keyword.split(options, [:timeout, :on_error])

      case run(event.book, own[:timeout] || @timeout, fn ->
             apply(module, callback, [event, options])
           end) do
        {:ok, answer} -> answer
        {:crash, reason} -> failed(module, callback, "crashed: #{crash(reason)}", own)
        :timeout -> failed(module, callback, "took longer than its time limit", own)
      end
    else
      :cont
    end
  end

  defp call(module, callback, event), do: call({module, []}, callback, event)

  # The book may have stopped.
  defp run(book, timeout, fun) do
    book |> Worker.start([], fun) |> Worker.run(timeout)
  catch
    :exit, reason -> {:crash, reason}
  end

  defp crash({error, _stack}) when is_exception(error), do: inspect(error.__struct__)
  defp crash(_reason), do: "it exited"

  defp bad({module, options}, callback, answer),
    do: failed(module, callback, "returned #{Outline.text(answer)}", options)

  defp bad(module, callback, answer), do: bad({module, []}, callback, answer)

  # No values, which may be what the hook should have hidden.
  defp failed(module, callback, how, options) do
    Logger.error("the hook #{inspect(module)}.#{callback}/2 #{how}")
    {:failed, options[:on_error] || :refuse}
  end
end
