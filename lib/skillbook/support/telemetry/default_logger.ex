defmodule Skillbook.Telemetry.DefaultLogger do
  @moduledoc false
  # Writes a log line for each event: its name, then its fields as `name=value`.

  require Logger

  alias Skillbook.Support.{Hidden, Options}
  alias Skillbook.Telemetry.{Events, Handlers}
  alias Skillbook.{OptionError, TelemetryError}

  @levels [:debug, :info, :notice, :warning, :error, :critical, :alert, :emergency]
  # Times of the event itself, which a log line has already, and values of flags.
  @left_out [:monotonic_time, :system_time, :flags]
  @times [:duration, :delay]

  @spec attach(keyword()) :: :ok | {:error, OptionError.t() | TelemetryError.t()}
  def attach(options) do
    with :ok <- Options.validate(options, "the default logger", schema()) do
      config = %{level: options[:level] || :info, books: options[:books] || :all}
      events = events(options[:events] || :all)
      Handlers.attach(__MODULE__, events, &__MODULE__.handle/4, config, "attach_default_logger/1")
    end
  end

  @spec detach() :: :ok
  def detach, do: Handlers.detach(__MODULE__)

  # The end of a span repeats all fields of its start.
  defp events(:all), do: for(%{name: name} <- Events.all(), List.last(name) != :start, do: name)

  defp events(chosen) do
    for name <- names(),
        name in chosen or (Enum.at(name, 1) in chosen and name in events(:all)),
        do: name
  end

  defp names, do: Enum.map(Events.all(), & &1.name)

  defp schema do
    groups = names() |> Enum.map(&Enum.at(&1, 1)) |> Enum.uniq()
    known = groups ++ names()

    [
      level: {"one of #{Enum.map_join(@levels, ", ", &inspect/1)}", &(&1 in @levels)},
      books:
        {":all or a list of names of books",
         &(&1 == :all or (is_list(&1) and Enum.all?(&1, fn book -> is_atom(book) end)))},
      events:
        {":all or a list of names of events, or of their groups " <>
           Enum.map_join(groups, ", ", &inspect/1),
         &(&1 == :all or (is_list(&1) and Enum.all?(&1, fn event -> event in known end)))}
    ]
  end

  @doc false
  def handle(name, measurements, metadata, config) do
    if Handlers.of_book?(metadata, config.books),
      do:
        Logger.log(config.level, fn -> {line(name, measurements, metadata), about(metadata)} end)
  end

  defp about(metadata),
    do: metadata |> Map.take([:book, :profile, :tenant, :skill]) |> Map.to_list()

  # The fields in the order of the list of events, so that lines of one event look alike.
  @doc false
  def line(name, measurements, metadata) do
    event = Enum.find(Events.all(), &(&1.name == name))
    fields = for key <- event.metadata, do: {key, metadata[key]}
    counts = for key <- event.measurements, do: {key, measurements[key]}

    [
      Enum.join(name, ".")
      | for({key, value} <- fields ++ counts, key not in @left_out, do: field(key, value))
    ]
  end

  defp field(_key, nil), do: []
  defp field(_key, []), do: []
  defp field(:usage, usage), do: for({key, count} <- Enum.sort(usage), do: field(key, count))
  defp field(key, value), do: [" ", Atom.to_string(key), "=", text(key, value)]

  defp text(key, time) when key in @times do
    milliseconds = System.convert_time_unit(time, :native, :microsecond) / 1_000
    "#{:erlang.float_to_binary(milliseconds, decimals: 1)}ms"
  end

  # No tenant's name is written so, since other signs than those of `word/1` are quoted.
  defp text(:tenant, :all), do: "*"
  defp text(_key, value) when is_binary(value), do: word(value)
  defp text(_key, value) when is_list(value), do: Enum.map_intersperse(value, ",", &text(nil, &1))
  defp text(_key, %DateTime{} = time), do: DateTime.to_iso8601(time)
  defp text(_key, value) when is_atom(value), do: word(String.trim_leading("#{value}", "Elixir."))
  defp text(_key, value), do: inspect(value)

  # A value cannot look like another field or another line.
  defp word(text) do
    if text =~ ~r/\A[\w.:@\/+-]+\z/u, do: text, else: text |> Hidden.visible() |> inspect()
  end
end
