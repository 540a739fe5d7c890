defmodule Skillbook.Model.Recording.Text do
  @moduledoc false
  # Requests and answers as JSON values: how they are compared, shown and cleaned of secrets.

  alias Skillbook.Model.{Content, Messages}
  alias Skillbook.Support.{Diff, JSON}

  @redacted "[redacted]"
  @max_lines 60

  # Patterns of keys and tokens, as their vendors write them.
  @tokens [
    ~S"sk-[A-Za-z0-9_-]{16,}",
    ~S"gh[pousr]_[A-Za-z0-9]{20,}",
    ~S"github_pat_[A-Za-z0-9_]{20,}",
    ~S"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    ~S"(?:AKIA|ASIA)[A-Z0-9]{16}",
    ~S"AIza[A-Za-z0-9_-]{35}",
    ~S"(?i:bearer) [A-Za-z0-9._~+/-]{16,}=*",
    ~S"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    ~S"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----"
  ]

  # Parts that differ from run to run.
  @varying [
    {~S"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z| ?UTC|[+-]\d{2}:?\d{2})?",
     "<time>"},
    {~S"\b\d{4}-\d{2}-\d{2}\b", "<date>"}
  ]

  # Ids that are made anew in each run: of rows (`T-30739173`), of stored results, and UUIDs.
  @ids ~S"\b(?:[A-Z]{1,3}-\d{6,}|(?=[a-z]*[2-7])[a-z2-7]{16}|" <>
         ~S"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})\b"

  @doc "A request as JSON values."
  @spec plain([map()], keyword()) :: map()
  def plain(messages, options) do
    %{"messages" => Enum.map(messages, &message/1), "options" => options(options)}
  end

  defp message(message) do
    %{"role" => to_string(message.role), "content" => Content.text(message.content, &media/1)}
    |> put("tool_calls", calls(message[:tool_calls]))
    |> put("id", message[:id])
    |> put("name", message[:name])
    |> put("error", if(message[:error], do: true))
  end

  # Other bytes or another URL are another request.
  defp media(media) do
    {_kind, source} = media.source
    Content.note(media) <> " sha256: " <> Messages.hash(source, 32)
  end

  defp calls(calls) when calls in [nil, []], do: nil
  defp calls(calls), do: for(call <- calls, do: stringify(call, ~w(id name arguments)a))

  defp stringify(map, keys), do: Map.new(keys, &{to_string(&1), map[&1]})

  # Time limits and callbacks do not decide about the answer.
  defp options(options) do
    plain = for name <- [:stop, :temperature, :max_tokens, :schema], do: {name, options[name]}
    choice = if options[:tool_choice] not in [nil, :auto], do: to_string(options[:tool_choice])

    for {name, value} <-
          plain ++
            [
              tool_choice: choice,
              tools: tools(options[:tools]),
              grammar: digest(options[:grammar]),
              extra: options[:extra] && options[:extra] |> Map.keys() |> Enum.sort()
            ],
        value not in [nil, []],
        into: %{},
        do: {to_string(name), value}
  end

  # The names are for the reader; the digest finds changes of descriptions and schemas.
  defp tools(tools) when tools in [nil, []], do: nil

  defp tools(tools) do
    plain = for tool <- tools, do: Map.take(tool, [:name, :description, :schema])
    %{"names" => Enum.map(tools, & &1.name), "digest" => plain |> JSON.encode() |> digest()}
  end

  defp digest(nil), do: nil

  defp digest(text) do
    :sha256
    |> :crypto.hash(text)
    |> binary_part(0, 12)
    |> Base.encode16(case: :lower)
  end

  @doc "An answer as JSON values."
  @spec answer(map()) :: map()
  def answer(answer) do
    %{"text" => answer.text, "finish_reason" => to_string(answer.finish_reason)}
    |> put("tool_calls", calls(answer[:tool_calls]))
    |> put("usage", answer.usage && Map.new(answer.usage, fn {k, n} -> {to_string(k), n} end))
  end

  @counts [:prompt_tokens, :completion_tokens, :cached_tokens, :cache_write_tokens]
  @reasons [:stop, :tool_calls, :length, :filtered, :other]

  @doc "The answer of JSON values, which were checked when they were read."
  @spec from_answer(map(), [map()]) :: map()
  def from_answer(answer, calls) do
    usage =
      if counts = answer["usage"],
        do: for(name <- @counts, n = counts["#{name}"], into: %{}, do: {name, n})

    reason = Enum.find(@reasons, &(to_string(&1) == answer["finish_reason"]))
    %{text: answer["text"], usage: usage, finish_reason: reason, tool_calls: calls}
  end

  @doc "A tool call of JSON values."
  @spec call(map()) :: map()
  def call(call), do: %{id: call["id"], name: call["name"], arguments: call["arguments"]}

  @doc "The name of a model, for readers of the file."
  @spec model_name(struct()) :: String.t() | nil
  def model_name(%{model: name}) when is_binary(name), do: name
  def model_name(_model), do: nil

  @doc "The secrets of a recording: texts and regular expressions."
  @spec secrets(map()) :: [String.t() | Regex.t()]
  def secrets(%{model: model, redact: redact}), do: key(model) ++ redact ++ patterns(@tokens)

  defp key(%{key: {:env, name}}), do: name |> System.get_env("") |> key_text()
  defp key(%{key: key}) when is_function(key, 0), do: key_text(key.())
  defp key(%{key: key}), do: key_text(key)
  # A fallback of several models.
  defp key(%{models: models}) when is_list(models), do: Enum.flat_map(models, &key/1)
  defp key(%{model: %_{} = model}), do: key(model)
  defp key(_model), do: []

  # A short text would be replaced in other words.
  defp key_text(text) when is_binary(text) and byte_size(text) >= 8, do: [String.trim(text)]
  defp key_text(_other), do: []

  # Compiled at run time: OTP 28 cannot keep a compiled expression in a module.
  defp patterns(sources), do: Enum.map(sources, &Regex.compile!("(?<![A-Za-z0-9])" <> &1))

  @doc "Replaces secrets in all texts of a value."
  @spec redact(term(), [String.t() | Regex.t()]) :: term()
  def redact(value, secrets), do: map(value, &Enum.reduce(secrets, &1, fn s, t -> hide(t, s) end))

  defp hide(text, %Regex{} = regex), do: Regex.replace(regex, text, @redacted)
  defp hide(text, secret), do: String.replace(text, secret, @redacted)

  @doc "Equal requests have equal keys."
  @spec key(map(), [Regex.t()]) :: binary()
  def key(request, ignore),
    do: :crypto.hash(:sha256, request |> normal(ignore) |> JSON.encode())

  defp normal(request, ignore) do
    varying = for {source, name} <- @varying, do: {Regex.compile!(source), name}
    varying = for(regex <- ignore, do: {regex, "<ignored>"}) ++ varying
    replace = fn {regex, name}, text -> Regex.replace(regex, text, name) end
    regex = Regex.compile!(@ids)
    numbers = request["messages"] |> ids() |> Enum.with_index(1) |> Map.new()
    number = &Regex.replace(regex, &1, fn id -> "<id #{numbers[id]}>" end)

    request
    |> Map.update!("messages", fn messages -> messages |> number_calls() |> map(number) end)
    |> map(&Enum.reduce(varying, &1, replace))
  end

  # In the order of their first use.
  defp ids(value) do
    regex = Regex.compile!(@ids)

    for text <- value |> texts() |> List.flatten(),
        [id] <- Regex.scan(regex, text),
        uniq: true,
        do: id
  end

  defp texts(text) when is_binary(text), do: if(String.valid?(text), do: [text], else: [])
  defp texts(values) when is_list(values), do: Enum.map(values, &texts/1)
  defp texts(%{} = values), do: values |> Enum.sort() |> Enum.map(fn {_key, v} -> texts(v) end)
  defp texts(_value), do: []

  @doc """
  Returns a recorded answer with the ids of the request that is sent in place of those of the
  recorded one.
  """
  @spec with_ids(map(), recorded :: map(), sent :: map()) :: map()
  def with_ids(answer, recorded, sent) do
    [from, to] = for request <- [recorded, sent], do: ids(request["messages"])
    ids = from |> Enum.zip(to) |> Map.new()
    regex = Regex.compile!(@ids)
    map(answer, &Regex.replace(regex, &1, fn id -> Map.get(ids, id, id) end))
  end

  # The ids of tool calls in the order of their first use.
  defp number_calls(messages) do
    ids = for message <- messages, call <- message["tool_calls"] || [], do: call["id"]
    numbers = ids |> Enum.uniq() |> Enum.with_index(1) |> Map.new()
    number = fn id -> if n = numbers[id], do: "call #{n}", else: id end

    for message <- messages do
      message = if message["id"], do: Map.update!(message, "id", number), else: message

      if message["tool_calls"],
        do: Map.update!(message, "tool_calls", &for(c <- &1, do: Map.update!(c, "id", number))),
        else: message
    end
  end

  defp map(text, fun) when is_binary(text),
    do: if(String.valid?(text), do: fun.(text), else: text)

  defp map(values, fun) when is_list(values), do: Enum.map(values, &map(&1, fun))
  defp map(%{} = values, fun), do: Map.new(values, fn {key, value} -> {key, map(value, fun)} end)
  defp map(value, _fun), do: value

  @doc "A request as text, with its messages one after the other."
  @spec request(map()) :: String.t()
  def request(request), do: request |> lines() |> Enum.join("\n") |> shortened()

  @doc "The difference of two requests, without the parts that may differ."
  @spec diff(map(), map(), [Regex.t()]) :: String.t()
  def diff(recorded, sent, ignore) do
    [from, to] =
      for request <- [recorded, sent],
          do: request |> normal(ignore) |> lines() |> Enum.map_join(&(&1 <> "\n"))

    from |> Diff.unified(to) |> shortened()
  end

  defp lines(%{"messages" => messages, "options" => options}) do
    ["options: " <> JSON.encode(options)] ++
      Enum.flat_map(messages, fn message ->
        more = Map.drop(message, ["role", "content"])
        more = if more == %{}, do: "", else: " " <> JSON.encode(more)
        [message["role"] <> more <> ":" | String.split(message["content"], "\n")]
      end)
  end

  defp shortened(text) do
    {lines, rest} = text |> String.trim_trailing() |> String.split("\n") |> Enum.split(@max_lines)
    more = if rest == [], do: [], else: ["… #{length(rest)} more lines"]
    Enum.join(lines ++ more, "\n")
  end

  defp put(map, _name, nil), do: map
  defp put(map, name, value), do: Map.put(map, name, value)
end
