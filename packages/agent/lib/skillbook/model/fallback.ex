defmodule Skillbook.Model.Fallback do
  @moduledoc """
  A list of models, of which the next one is asked if one does not answer.

      {:ok, model} =
        Skillbook.Model.Fallback.new([
          Skillbook.Model.Anthropic.new!(model: "claude-sonnet-4-5"),
          Skillbook.Model.OpenAI.new!(url: "http://localhost:8080", model: "qwen3")
        ])

  The next model is asked if the server of one is overloaded or fails, limits its requests, does
  not answer in time, or cannot be reached, after the retries of that model. After the first word
  was passed on, the error is returned, since the words of two models do not make one answer.
  Errors of the request or of its key are returned at once: they are there to be corrected.

  A model that failed is asked last for a while, in all processes that use the same
  `Skillbook.Model.Fallback`.

  `:model` of the answer says which model answered. Each model gives the data of its own answers
  (`:opaque`) back to its server, and ignores that of the others.

  ## Options

    * `:pause` - milliseconds for which a model that failed is asked last; if its server asks for
      more, that long, up to an hour. Default: 60,000
    * `:clock` - a function that returns milliseconds of a monotonic clock. Default: that of the
      virtual machine

  ## Examples

      iex> alias Skillbook.Model
      iex> error = %Skillbook.ModelError{kind: :server, status: 529, reason: "overloaded"}
      iex> down = Model.Function.new(fn _messages, _options -> {:error, error} end)
      iex> up = Model.Function.new(fn _messages, _options -> "Hello" end)
      iex> {:ok, model} = Model.Fallback.new([down, up])
      iex> messages = [%{role: :user, content: "Hi"}]
      iex> {:ok, answer} = Model.chat(model, messages, [], fn _text -> :ok end)
      iex> answer.text
      "Hello"

      iex> {:error, error} = Skillbook.Model.Fallback.new([])
      iex> Exception.message(error)
      "expected a list of models as the option :models of a fallback, got: []"
  """

  @behaviour Skillbook.Model

  alias Skillbook.{Model, ModelError, OptionError}
  alias Skillbook.Support.Options

  @type t :: %__MODULE__{
          models: [Model.t(), ...],
          pause: pos_integer(),
          clock: (() -> integer()),
          paused: :atomics.atomics_ref()
        }

  @derive {Inspect, only: [:models, :pause]}
  @enforce_keys [:models, :paused]
  defstruct [:models, :paused, pause: 60_000, clock: &Skillbook.Model.Fallback.now/0]

  @max_pause 3_600_000
  # The smallest number of a counter, since a monotonic clock may be negative.
  @never -0x8000_0000_0000_0000
  @kinds [:connection, :timeout, :rate_limited, :server, :cut_off]

  @doc "Builds a model from a list of models and the options above."
  @spec new([Model.t()], keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(models, options \\ []) do
    schema = [
      models: {"a list of models", &models?/1},
      pause: {"a number of milliseconds", &Options.milliseconds?/1},
      clock: {"a function without arguments", &is_function(&1, 0)}
    ]

    options = Options.keywords(options)
    given = if Keyword.keyword?(options), do: [{:models, models} | options], else: options

    with :ok <- Options.validate(given, "a fallback", schema) do
      # The time until which each model is asked last, from the start of the clock.
      paused = :atomics.new(length(models), signed: true)
      for place <- 1..length(models), do: :atomics.put(paused, place, @never)
      {:ok, struct!(__MODULE__, [models: models, paused: paused] ++ options)}
    end
  end

  @doc "Like `new/2`, but raises the error."
  @spec new!([Model.t()], keyword()) :: t()
  def new!(models, options \\ []) do
    case new(models, options) do
      {:ok, model} -> model
      {:error, error} -> raise error
    end
  end

  defp models?(models),
    do: is_list(models) and models != [] and Enum.all?(models, &Model.model?/1)

  @doc false
  @spec now() :: integer()
  def now, do: System.monotonic_time(:millisecond)

  @doc "Whether all of its models take tools."
  @impl true
  def tools?(%__MODULE__{models: models}), do: Enum.all?(models, &Model.tools?/1)

  @doc "Whether all of its models take the images, files and audio of messages."
  @impl true
  def check(%__MODULE__{models: models}, messages),
    do: Enum.find_value(models, :ok, &with(:ok <- Model.check(&1, messages), do: nil))

  @impl true
  def chat(%__MODULE__{} = fallback, messages, options, on_text) do
    # A model may pass text on and not have it in its error.
    said = :counters.new(1, [])

    on_text = fn text ->
      :counters.add(said, 1, 1)
      on_text.(text)
    end

    deadline = options[:timeout] && fallback.clock.() + options[:timeout]

    request = fn model ->
      with {:error, error} <-
             Model.chat(model, messages, in_time(options, left(fallback, deadline)), on_text),
           do: {:error, error, :counters.get(said, 1) == 0 and error.text == ""}
    end

    ask(order(fallback), 1, fallback, request, %{
      on_retry: options[:on_retry] || fn _retry -> :ok end,
      left?: fn -> left(fallback, deadline) != 0 end
    })
  end

  defp left(_fallback, nil), do: nil
  defp left(fallback, deadline), do: max(deadline - fallback.clock.(), 0)

  defp in_time(options, nil), do: options
  defp in_time(options, left), do: Keyword.put(options, :timeout, max(left, 1))

  # Those that failed come last, the first that is asked again before the others.
  defp order(fallback) do
    now = fallback.clock.()

    fallback.models
    |> Enum.with_index(1)
    |> Enum.sort_by(fn {_model, place} -> max(:atomics.get(fallback.paused, place), now) end)
  end

  defp ask([{model, place} | rest], number, fallback, request, call) do
    case request.(model) do
      {:ok, answer} ->
        :atomics.put(fallback.paused, place, @never)
        {:ok, answer}

      {:error, %ModelError{kind: kind} = error, silent?} when kind in @kinds ->
        pause(fallback, place, error)

        if silent? and rest != [] and call.left?.() do
          call.on_retry.(%{attempt: number + 1, delay: 0, error: error})
          ask(rest, number + 1, fallback, request, call)
        else
          {:error, error}
        end

      {:error, error, _silent?} ->
        {:error, error}
    end
  end

  defp pause(fallback, place, error) do
    pause = min(max(error.retry_after || 0, fallback.pause), max(@max_pause, fallback.pause))
    :atomics.put(fallback.paused, place, fallback.clock.() + pause)
  end
end
