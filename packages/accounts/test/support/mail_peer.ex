defmodule Skillbook.Test.MailPeer do
  @moduledoc false
  # Compares what `Skillbook.Mail.MIME` reads of mails with what Python's `email` reads. The rows
  # are written by test/fixtures/mails/make.py.

  alias Skillbook.Mail.MIME
  alias Skillbook.Support.JSON

  @fields ~w(subject from to cc date text html files)

  @doc "The rows of a file: `{name, mail, what Python reads}`."
  def rows(path) do
    for line <- path |> File.read!() |> String.split("\n", trim: true) do
      {:ok, row} = JSON.decode(line)
      {row["name"], Base.decode64!(row["raw"]), Map.take(row, @fields)}
    end
  end

  @doc "The differences of a row: `{field, ours, Python's}`."
  def differences({_name, raw, theirs}) do
    ours = ours(raw)

    for field <- @fields, not equal?(field, ours[field], theirs[field]) do
      {field, ours[field], theirs[field]}
    end
  end

  defp ours(raw) do
    {:ok, mail} = MIME.parse(raw)

    %{
      "subject" => mail.subject,
      "from" => addresses(mail.from),
      "to" => addresses(mail.to),
      "cc" => addresses(mail.cc),
      "date" => mail.date,
      "text" => mail.text || "",
      "html" => mail.html || "",
      "files" => for(file <- mail.attachments, do: [file.name, file.type, file.size])
    }
  end

  defp addresses(list), do: for(one <- list, do: [one.name, one.address])

  # Blanks at the end of a text say nothing.
  defp equal?(field, ours, theirs) when field in ["text", "html"] and is_binary(theirs),
    do: String.trim_trailing(ours) == String.trim_trailing(theirs)

  # Of a mail in a mail Python knows no size.
  defp equal?("files", ours, theirs) when is_list(theirs) and length(ours) == length(theirs) do
    Enum.all?(Enum.zip(ours, theirs), fn
      {[name, type, _size], [name, type, nil]} -> true
      {ours, theirs} -> ours == theirs
    end)
  end

  defp equal?(_field, ours, theirs), do: ours == theirs

  @doc "Prints the differences of the rows of a file, and how many mails have none."
  def print(path) do
    rows = rows(path)

    equal =
      Enum.count(rows, fn {name, _raw, _theirs} = row ->
        found = differences(row)

        for {field, ours, theirs} <- found do
          IO.puts("#{name}\t#{field}\n  ours   #{shown(ours)}\n  python #{shown(theirs)}")
        end

        found == []
      end)

    IO.puts("#{length(rows)} mails, #{equal} without a difference")
  end

  defp shown(value), do: value |> inspect(limit: 20, printable_limit: 300) |> String.slice(0, 400)
end
