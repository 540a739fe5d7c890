defmodule Skillbook.Mail.IMAP.Id do
  @moduledoc false
  # Ids of messages, such as `20261118-4821-azau2lvlmdaw`: the day on which the server received it
  # (UTC), its size in bytes, and a digest of these two with its Message-ID.
  #
  # UIDs change when a message is moved to another folder, and servers that keep an id of their
  # own (RFC 8474) are rare. These three stay, so a message is found again wherever it is: by its
  # day and size among the messages of a folder, then by the digest. An id has no text of a
  # stranger, and nobody can write a mail that gets the id of another one.

  alias Skillbook.Support.Number

  @enforce_keys [:text, :day, :size]
  defstruct [:text, :day, :size]

  @type t :: %__MODULE__{text: String.t(), day: Date.t(), size: pos_integer()}

  @form ~r/\A(\d{4})(\d\d)(\d\d)-([1-9]\d{0,9})-[a-z2-7]{12}\z/

  @doc """
  The id of a message, by its time in seconds since 1970, its size and its Message-ID.

      iex> Skillbook.Mail.IMAP.Id.make(1_795_000_000, 4821, "a@example.org")
      "20261118-4821-azau2lvlmdaw"
  """
  @spec make(integer(), pos_integer(), String.t() | nil) :: String.t()
  def make(time, size, message_id) do
    day = time |> DateTime.from_unix!() |> Calendar.strftime("%Y%m%d")
    "#{day}-#{size}-#{digest("#{time} #{size} #{message_id}")}"
  end

  @doc "The parts of an id, or `:error`."
  @spec parse(String.t()) :: {:ok, t()} | :error
  def parse(text) do
    with [_, year, month, day, size] <- Regex.run(@form, text),
         {:ok, day} <- Date.from_iso8601("#{year}-#{month}-#{day}"),
         size when size < 0xFFFF_FFFF <- Number.integer!(size) do
      {:ok, %__MODULE__{text: text, day: day, size: size}}
    else
      _other -> :error
    end
  end

  @doc "The id of a thread, by the Message-ID of its first message."
  @spec thread(String.t()) :: String.t()
  def thread(root), do: "t-" <> digest(root)

  # 60 bits
  defp digest(text) do
    :crypto.hash(:sha256, text)
    |> Base.encode32(case: :lower, padding: false)
    |> binary_part(0, 12)
  end
end
