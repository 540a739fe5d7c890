defmodule Skillbook.Handlers.HubSpot.Properties do
  @moduledoc false
  # Properties that a command names itself: `name=value`, conditions such as `amount>1000`, and
  # names. They are checked by the account's own definitions, so that a wrong name gets a
  # suggestion; HubSpot ignores some of them in silence.

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.API
  alias Skillbook.Support.{Closest, External, UntilError}

  @type condition :: {String.t(), String.t(), String.t()}

  @max_options 20

  @doc "Reads the values of `--set`."
  @spec pairs([String.t()]) :: {:ok, [{String.t(), String.t()}]} | {:error, FlagError.t()}
  def pairs(texts) do
    each(texts, "set", "NAME=VALUE, a property and its value", "city=Berlin", fn text ->
      with [name, value] <- String.split(text, "=", parts: 2), do: {name, String.trim(value)}
    end)
  end

  @doc "Reads the values of `--where`."
  @spec conditions([String.t()]) :: {:ok, [condition()]} | {:error, FlagError.t()}
  def conditions(texts) do
    expected = "a property, one of = != > >= < <= ~, and a value, without spaces around it"

    each(texts, "where", expected, "city=Berlin", fn text ->
      with [_, name, operator, value] <-
             Regex.run(~r/\A([^=!<>~]*)(!=|>=|<=|=|>|<|~)(.*)\z/su, text),
           do: {name, operator, String.trim(value)}
    end)
  end

  defp each(texts, flag, expected, example, read) do
    UntilError.map(texts, fn text ->
      with item when is_tuple(item) <- read.(text),
           {:ok, name} <- name(elem(item, 0)) do
        {:ok, put_elem(item, 0, name)}
      else
        _ -> FlagError.invalid(flag, text, expected, example)
      end
    end)
  end

  @doc "The form of a property's name."
  @spec name(String.t()) :: {:ok, String.t()} | :error
  def name(text) do
    name = text |> String.trim() |> String.downcase()
    if name =~ ~r/\A[a-z][a-z0-9_]{0,99}\z/, do: {:ok, name}, else: :error
  end

  @doc "The definitions of properties by their names."
  @spec definitions(API.call()) :: {:ok, map()} | {:error, Exception.t()}
  def definitions(call) do
    with {:ok, list} <- API.properties(call),
         do:
           {:ok,
            for(%{"name" => name} = one when is_binary(name) <- list, into: %{}, do: {name, one})}
  end

  @doc "Checks that properties exist."
  @spec known([String.t()], map(), String.t(), API.call()) :: :ok | {:error, FlagError.t()}
  def known(names, definitions, flag, call) do
    case Enum.find(names, &(name(&1) == :error or not Map.has_key?(definitions, norm(&1)))) do
      nil -> :ok
      unknown -> unknown(flag, unknown, definitions, call)
    end
  end

  @doc "The name of a property as HubSpot writes it."
  @spec norm(String.t()) :: String.t()
  def norm(text), do: with({:ok, name} <- name(text), do: name)

  defp unknown(flag, name, definitions, call) do
    # By its name, or by its label as people see it.
    labels = for {name, %{"label" => label}} <- definitions, is_binary(label), do: {label, name}
    near = Closest.several(name, Map.keys(definitions), 3)
    same = for {label, property} <- labels, key(label) == key(name), do: property
    near = Enum.uniq(same ++ near)

    guess =
      if near == [],
        do: "",
        else: ", did you mean #{Enum.join(near, " or ")}?"

    example = List.first(near) || "email"
    expected = "a property of #{call.object.many} at HubSpot#{guess}"
    example = if flag in ["set", "where"], do: example <> "=VALUE", else: example
    FlagError.invalid(flag, name, String.trim_trailing(expected, "?"), example)
  end

  defp key(text), do: text |> String.downcase() |> String.replace(~r/[\s_-]/u, "")

  @doc "The values for properties, with the labels of options replaced by their values."
  @spec values([{String.t(), String.t()}], map(), API.call()) ::
          {:ok, map()} | {:error, FlagError.t()}
  def values(pairs, definitions, call) do
    with :ok <- known(Enum.map(pairs, &elem(&1, 0)), definitions, "set", call) do
      UntilError.reduce(pairs, %{}, fn {name, value}, done ->
        definition = definitions[name]

        with :ok <- writable(name, definition),
             {:ok, value} <- option(name, value, definition, "set"),
             do: {:ok, Map.put(done, name, value)}
      end)
    end
  end

  defp writable(name, %{"modificationMetadata" => %{"readOnlyValue" => true}}),
    do: FlagError.invalid("set", name, "a property that can be set; HubSpot sets this one itself")

  defp writable(_name, _definition), do: :ok

  # An empty value clears the property.
  defp option(_name, "", _definition, _flag), do: {:ok, ""}

  defp option(name, value, %{"type" => type, "options" => [_ | _] = options} = definition, flag)
       when type in ["enumeration", "bool"] do
    # Checkboxes have several values.
    parts = if definition["fieldType"] == "checkbox", do: String.split(value, ";"), else: [value]

    case Enum.map(parts, &{&1, chosen(&1, options)}) do
      pairs when pairs != [] ->
        case Enum.find(pairs, &(elem(&1, 1) == nil)) do
          nil ->
            {:ok, Enum.map_join(pairs, ";", &elem(&1, 1))}

          {part, nil} ->
            FlagError.invalid(flag, part, "one of the values of #{name}: #{listed(options)}")
        end
    end
  end

  defp option(_name, value, _definition, _flag), do: {:ok, value}

  defp chosen(text, options) do
    wanted = key(text)

    Enum.find_value(options, fn
      %{"value" => value} = option when is_binary(value) ->
        if wanted in [key(value), key(to_string(option["label"]))], do: value

      _ ->
        nil
    end)
  end

  defp listed(options) do
    values = for %{"value" => value, "hidden" => false} <- options, do: External.line(value, 40)
    more = if length(values) > @max_options, do: ", …", else: ""
    Enum.join(Enum.take(values, @max_options), ", ") <> more
  end

  @operators %{
    "=" => "EQ",
    "!=" => "NEQ",
    ">" => "GT",
    ">=" => "GTE",
    "<" => "LT",
    "<=" => "LTE",
    "~" => "CONTAINS_TOKEN"
  }

  @doc "The filters of a search for conditions. An empty value means that the property has none."
  @spec filters([condition()], map(), API.call()) :: {:ok, [map()]} | {:error, FlagError.t()}
  def filters(conditions, definitions, call) do
    with :ok <- known(Enum.map(conditions, &elem(&1, 0)), definitions, "where", call),
         do: UntilError.map(conditions, &filter(&1, definitions, call))
  end

  defp filter({name, "=", ""}, _definitions, _call),
    do: {:ok, %{propertyName: name, operator: "NOT_HAS_PROPERTY"}}

  defp filter({name, "!=", ""}, _definitions, _call),
    do: {:ok, %{propertyName: name, operator: "HAS_PROPERTY"}}

  defp filter({name, operator, ""}, _definitions, _call),
    do: FlagError.invalid("where", name <> operator, "a condition with a value after #{operator}")

  defp filter({name, operator, value}, definitions, call) do
    definition = definitions[name]

    with {:ok, value} <- option(name, value, definition, "where"),
         {:ok, value} <- moment(name, value, definition, call) do
      {:ok, %{propertyName: name, operator: @operators[operator], value: value}}
    end
  end

  # Searches compare times as milliseconds.
  defp moment(name, value, %{"type" => type}, call) when type in ["date", "datetime"] do
    case time(value, DateTime.to_date(call.now)) do
      {:ok, time} ->
        {:ok, to_string(DateTime.to_unix(time, :millisecond))}

      :error ->
        expected =
          "a day for #{name}: YYYY-MM-DD, yesterday, today or tomorrow, or a time in ISO 8601"

        FlagError.invalid("where", value, expected, "#{name}>=2026-01-31")
    end
  end

  defp moment(_name, value, _definition, _call), do: {:ok, value}

  defp time("today", today), do: midnight(today)
  defp time("yesterday", today), do: midnight(Date.add(today, -1))
  defp time("tomorrow", today), do: midnight(Date.add(today, 1))

  defp time(text, _today) do
    with {:error, _} <- Date.from_iso8601(text),
         {:error, _} <- DateTime.from_iso8601(text) do
      :error
    else
      {:ok, date} -> midnight(date)
      {:ok, time, _offset} -> {:ok, time}
    end
  end

  defp midnight(date), do: DateTime.new(date, ~T[00:00:00])
end
