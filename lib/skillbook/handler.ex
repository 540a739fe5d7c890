defmodule Skillbook.Handler do
  @moduledoc """
  Behaviour for modules that run a command.

  The page of a command names its handler in the frontmatter:

      ---
      name: weather.today
      description: Returns today's weather
      handler: MyApp.Weather.Today
      ---

  The handler gets the flags and the `Skillbook.Context` of the call, and returns text for the
  model. It runs in a supervised process with a time limit, so a crash only fails its own command.
  Use `context.now` for the time, which makes the handler testable.

  ## Flags

  Flags are a map with string keys. Flags that the page declares in its Flags section are checked
  before the handler is called and have their declared types: `--limit 7` for an integer is
  `%{"limit" => 7}`. Defaults are set, words before the first flag are assigned to their flags,
  and other absent flags are not in the map (`Skillbook.Flags.cast_declared/3`).

  If the page declares no flags, they are passed as written: a flag without a value is `true`,
  with one value a string, and with several a list of strings. In a JSON object values may also be
  numbers, booleans, `nil`, maps and lists. Check them with `Skillbook.Flags`:

  ## Examples

      iex> defmodule Greet do
      ...>   @behaviour Skillbook.Handler
      ...>   alias Skillbook.{Flags, Result}
      ...>
      ...>   @impl true
      ...>   def execute(flags, context) do
      ...>     with {:ok, flags} <- Flags.known(flags, ["name"]),
      ...>          {:ok, flags} <- Flags.cast_text(flags, "name", max: 40) do
      ...>       {:ok, Result.ok("Hello, \#{flags["name"] || context.profile.id}!")}
      ...>     end
      ...>   end
      ...> end
      iex> {:ok, result} = Greet.execute(%{"name" => "Ann"}, %{profile: %{id: "bob"}})
      iex> result.content
      "Hello, Ann!"
      iex> {:error, e} = Greet.execute(%{"nam" => "Ann"}, %{profile: %{id: "bob"}})
      iex> Exception.message(e)
      "unknown flag --nam; did you mean --name? Known flags: --name"
  """

  @doc """
  Runs the command.

  `{:ok, text}` is short for a `Skillbook.Result` with this content, and `:ok` for the text
  "Done.".

  On an error the text of the reason goes to the model, which may correct the command and try
  again. The reason is a text, an exception, or another term that `Skillbook.ReturnedError` writes
  in words, such as `:not_found` or the changeset of an Ecto repo. None of them is a failure for
  the circuit breaker.
  """
  @callback execute(flags :: Skillbook.Flags.t(), context :: Skillbook.Context.t()) ::
              :ok
              | {:ok, Skillbook.Result.t() | String.t()}
              | :error
              | {:error, Exception.t() | String.t() | term()}

  @doc """
  Checks a call before somebody is asked about it, and before it runs.

  Return an error for a call that `c:execute/2` would refuse: flags that exclude each other, a
  record that does not exist, a limit that is reached. Then nobody is asked to approve it. A check
  changes nothing.

  It gets the same flags and context, runs in a process of its own with the same time limit and
  within the same concurrency limits, and a crash is the same error. It runs again when a call
  that waited was approved. It is not called for a profile that may not run the command, nor for
  a command that a test stubs. `Skillbook.Executor` lists the order of the checks.

  A `connection` in the frontmatter needs no check: without an account for it a call is refused
  before.
  """
  @callback check(flags :: Skillbook.Flags.t(), context :: Skillbook.Context.t()) ::
              :ok | :error | {:error, Exception.t() | String.t() | term()}

  @optional_callbacks check: 2
end
