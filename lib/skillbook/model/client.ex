defmodule Skillbook.Model.Client do
  @moduledoc false
  # Shared by the models that call a server: their options, the key, and the request for an
  # answer. The module of such a model makes the body of a request and reads the events of an
  # answer; it is a struct with the fields of `fields/0`.

  alias Skillbook.HTTP.{Failure, Service}
  alias Skillbook.Model.Answer
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{Model, ModelError, OptionError}

  @doc "The name of the interface, for `opaque` of messages."
  @callback vendor() :: String.t()

  @doc "The fields of a request. Those that are `nil` are left out."
  @callback body(struct(), [Model.message()], keyword()) :: map()

  @doc "The headers of a request with a key."
  @callback headers((() -> String.t()) | nil) :: [{String.t(), String.t()}]

  @doc "Reads an event of a stream, with the functions of `Skillbook.Model.Answer`."
  @callback event(map(), Answer.t()) :: Answer.t()

  @doc "Reads an answer that is not streamed; `nil` if it is something else."
  @callback whole(term(), Answer.t()) :: Answer.t() | nil

  @doc "The options of `Skillbook.Model.chat/4` that the interface does not have."
  @callback missing_options() :: [atom()]

  @doc "The fields of a model's struct, with their defaults."
  @spec fields() :: [atom() | {atom(), term()}]
  def fields, do: Service.fields() ++ [structured: :json_schema, cache: true, extra: %{}]

  @doc """
  Checks options and makes a model's struct. `own` are the options of its module, `defaults` those
  that are not `nil`, and `endpoint` makes its URL from that of the server and the model's name.
  """
  @spec new(module(), term(), keyword(), keyword(), (String.t(), String.t() -> URI.t())) ::
          {:ok, struct()} | {:error, OptionError.t()}
  def new(module, options, defaults, own, endpoint) do
    options = Options.keywords(options, [:cache])
    options = if Keyword.keyword?(options), do: Keyword.merge(defaults, options), else: options

    # In the order of the documentation.
    {first, rest} = Enum.split(Service.schema(), 3)
    extra = {"a map with texts as keys", &(is_map(&1) and Options.texts?(Map.keys(&1)))}
    schema = first ++ own ++ [extra: extra] ++ rest

    with {:ok, url, name} <- Service.validate(options, "a model", schema),
         do: {:ok, struct!(module, Keyword.put(options, :url, endpoint.(url, name)))}
  end

  @doc "The model of `new/5`, or raises its error."
  @spec new!({:ok, struct()} | {:error, OptionError.t()}) :: struct()
  def new!({:ok, model}), do: model
  def new!({:error, error}), do: raise(error)

  @doc "The option `:cache`, whose `ttl` is one of these, with further keys of its list."
  @spec cache([String.t()], [atom()]) :: {String.t(), (term() -> boolean())}
  def cache(ttls, more \\ []) do
    ttl = Enum.map_join(ttls, " or ", &~s([ttl: "#{&1}"]))
    more_text = Enum.map_join(more, &~s( or [#{&1}: "…"]))

    {"true, false or " <> ttl <> more_text,
     fn cache ->
       is_boolean(cache) or
         (Keyword.keyword?(cache) and Keyword.keys(cache) -- [:ttl | more] == [] and
            (cache[:ttl] == nil or cache[:ttl] in ttls) and
            Enum.all?(more, &(cache[&1] == nil or Options.text?(cache[&1]))))
     end}
  end

  @doc "As `c:Skillbook.Model.chat/4`."
  @spec chat(struct(), [Model.message()], keyword(), (String.t() -> any())) ::
          {:ok, map()} | {:error, ModelError.t()}
  def chat(%module{} = model, messages, options, on_text) do
    with [] <- for(option <- module.missing_options(), options[option] != nil, do: option),
         {:ok, key} <- Service.key(model) do
      request(model, key, messages, options, on_text)
    else
      [missing | _] ->
        reason =
          "the interface of #{inspect(module)} has no #{inspect(missing)}; leave the option out"

        {:error, %ModelError{kind: :refused, reason: reason}}

      {:error, reason} ->
        {:error, %ModelError{kind: :key, reason: reason}}
    end
  end

  defp request(%module{} = model, key, messages, options, on_text) do
    timeout = min(options[:timeout] || model.timeout, model.timeout)
    deadline = System.monotonic_time(:millisecond) + timeout
    body = encode(model, messages, options)
    headers = fn -> [{"accept", "text/event-stream"} | module.headers(key)] end

    Service.attempt(model, deadline, options[:on_retry] || fn _ -> :ok end, fn ->
      answer = Answer.new(model, on_text, options[:on_tool_call])

      model
      |> Service.post(headers, body, deadline, false, answer, &Answer.part/2)
      |> Answer.result(model.url)
      |> Failure.hide_key(key)
    end)
  end

  @doc """
  The body of a request. Keys are sorted, so equal messages have equal bytes in each request, and
  the caches of servers find them.
  """
  @spec encode(struct(), [Model.message()], keyword()) :: String.t()
  def encode(%module{} = model, messages, options) do
    model
    |> module.body(messages, options)
    |> merge(model.extra)
    |> merge(options[:extra] || %{})
    |> Map.reject(fn {_name, value} -> value == nil end)
    |> JSON.encode()
  end

  # A map in `extra` adds to the fields of a map.
  defp merge(fields, extra) do
    Map.merge(fields, extra, fn
      _name, %{} = before, %{} = more -> merge(before, more)
      _name, _before, other -> other
    end)
  end

  @doc "The schema of the answer for the server, or `nil`."
  @spec schema(struct(), keyword()) :: map() | nil
  def schema(%{structured: :prompt}, _options), do: nil
  def schema(_model, options), do: options[:schema]
end
