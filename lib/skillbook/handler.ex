defmodule Skillbook.Handler do
  @moduledoc """
  A module that carries out a command.

  A command's document names its handler in the frontmatter (`handler: MyApp.Weather.Today`). The
  handler gets the flags as the document declares them and the `Skillbook.Context` of the call, and
  answers with text for the model. It runs in a supervised process with a time limit, so it may
  crash without harm; it takes the time from `context.now`, which makes it testable.

  ## Flags

  A map with string keys. Where the document's Flags section declares them, they are checked before
  the handler is called, and the values have the declared types: `--limit 7` of a whole number is
  `%{"limit" => 7}`. Defaults are filled in, words before the first flag are in the flags that they
  stand for, and other flags that were not given are absent (`Skillbook.Flags.cast_declared/3`).

  A document that declares none leaves the flags as they were written. Then a flag without a value
  is `true`, one with a value is a string, one with several is a list of strings; of a JSON object
  the values may also be numbers, booleans, `nil`, maps and lists of these. The handler checks them
  with `Skillbook.Flags`:

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
  Carries out the command.

  `{:ok, text}` is short for a `Skillbook.Result` with that content; an error's message, or its text, goes to
  the model, which may mend its command and try again.
  """
  @callback execute(flags :: Skillbook.Flags.t(), context :: Skillbook.Context.t()) ::
              {:ok, Skillbook.Result.t() | String.t()} | {:error, Exception.t() | String.t()}
end
