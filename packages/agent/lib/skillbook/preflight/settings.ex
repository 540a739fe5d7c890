defmodule Skillbook.Preflight.Settings do
  @moduledoc false
  # Checks the options of the router, and merges those of the book, the profile and the call.

  alias Skillbook.Support.Options
  alias Skillbook.{Book, Model, OptionError, Profile, View}

  @type t :: %__MODULE__{
          enabled: boolean(),
          model: Model.t() | nil,
          max: 1..10,
          stages: [Skillbook.Preflight.Pick.stage()],
          threshold: float(),
          timeout: pos_integer(),
          max_tokens: pos_integer()
        }

  @stages [:keywords, :retrieval, :model]

  defstruct enabled: true,
            model: nil,
            max: 3,
            stages: @stages,
            threshold: 0.5,
            timeout: nil,
            max_tokens: 8_000

  @doc "Checks the `:preflight` of a book, a profile or a run, which may be `false` or `nil`."
  @spec validate(keyword() | false | nil, String.t()) :: :ok | {:error, OptionError.t()}
  def validate(off, _subject) when off in [nil, false], do: :ok
  def validate(options, subject), do: Options.validate(options, subject, schema())

  @doc """
  The settings of a call: the options of the book, then of the profile, then of the call.

  They are not enabled if the profile's say so, whatever the call says.
  """
  @spec of_call(View.t(), keyword()) :: t()
  def of_call(%View{profile: profile} = view, options) do
    with {:error, error} <- Options.validate(options, "a preflight", schema()), do: raise(error)
    settings = struct!(__MODULE__, Enum.concat([of_book(view) || [], own(profile), options]))
    timeout = settings.timeout || default_timeout(settings)
    %{settings | timeout: timeout, enabled: settings.enabled and not off?(profile)}
  end

  # A model needs longer than a search.
  defp default_timeout(settings),
    do: if(settings.model && :model in settings.stages, do: 3_000, else: 1_000)

  @doc """
  The settings of a run's first turn; `nil` if the book and the profile have none, or not enabled.
  """
  @spec of_run(View.t(), keyword() | false | nil) :: t() | nil
  def of_run(_view, false), do: nil

  def of_run(view, options) do
    configured? = Enum.any?([of_book(view), view.profile.preflight, options], &is_list/1)

    case configured? && of_call(view, options || []) do
      %{enabled: true} = settings -> settings
      _ -> nil
    end
  end

  defp of_book(%View{book: book}) do
    case Book.find(book) do
      %{of_parts: %{preflight: [_ | _] = options}} -> options
      %{of_parts: %{preflight: []}} -> []
      %{of_parts: %{preflight: false}} -> [enabled: false]
      _ -> nil
    end
  end

  defp own(%Profile{preflight: options}) when is_list(options),
    do: Keyword.put_new(options, :enabled, true)

  defp own(_profile), do: []

  defp off?(%Profile{preflight: options}),
    do: options == false or (is_list(options) and options[:enabled] == false)

  defp schema do
    [
      enabled: {"a boolean", &is_boolean/1},
      model: {"a model or nil", &(is_nil(&1) or Model.model?(&1))},
      max: {"a whole number from 1 to 10", &(&1 in 1..10)},
      stages: {"a list of #{Enum.map_join(@stages, ", ", &inspect/1)}", &stages?/1},
      threshold: {"a number from 0 to 1", &(is_number(&1) and &1 >= 0 and &1 <= 1)},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      max_tokens: {"a whole number from 1", &Options.positive?/1}
    ]
  end

  defp stages?(stages), do: is_list(stages) and stages -- @stages == []
end
