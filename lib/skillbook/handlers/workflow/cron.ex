defmodule Skillbook.Handlers.Workflow.Cron do
  @moduledoc false
  # Whether a text has the shape of a schedule, so that a slip is answered at once rather than when the schedule is read.
  # When it fires is not known here.

  @nicknames ~w(@hourly @daily @midnight @weekly @monthly @yearly @annually)
  @fields [0..59, 0..23, 1..31, 1..12, 0..7]
  @item "(?:\\*|\\?|L|[0-9]{1,2}L?|[A-Za-z]{3})(?:-(?:[0-9]{1,2}|[A-Za-z]{3}))?(?:/[0-9]{1,3}|#[1-5])?"
  @field Regex.compile!("\\A#{@item}(?:,#{@item})*\\z")

  @doc "`{:ok, schedule}` with single blanks between its fields, or `:error`."
  @spec cast(String.t()) :: {:ok, String.t()} | :error
  def cast(text) do
    case String.split(text) do
      [nickname] ->
        if String.downcase(nickname) in @nicknames, do: {:ok, String.downcase(nickname)}, else: :error

      fields when length(fields) in 5..6 ->
        if fields?(fields), do: {:ok, Enum.join(fields, " ")}, else: :error

      _ ->
        :error
    end
  end

  defp fields?(fields) do
    # Six fields begin with the seconds.
    ranges = if length(fields) == 6, do: [0..59 | @fields], else: @fields

    fields
    |> Enum.zip(ranges)
    |> Enum.all?(fn {field, range} -> field =~ @field and within?(field, range) end)
  end

  # Steps (after a slash) and weeks (after #) are no times.
  defp within?(field, range) do
    ~r/(?<![\/#0-9])[0-9]+/
    |> Regex.scan(field)
    |> Enum.all?(fn [number] -> String.to_integer(number) in range end)
  end
end
