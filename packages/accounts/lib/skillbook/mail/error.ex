defmodule Skillbook.MailError do
  @moduledoc """
  Returned when a mail cannot be sent, or may have been sent.

  ## Fields

    * `:kind` - the cause:
      * `:unclear` - the connection was lost after the mail had been handed over, and the mail was
        not found among the sent ones. It may still arrive
      * `:unsaved` - it was sent, and its copy could not be stored among the sent ones
      * `:too_large` - the attachments have more bytes together than the service takes
      * `:recipients` - there are more recipients than one mail may have
      * `:international` - the service takes no addresses with letters outside ASCII before the
        `@`
      * `:address` - the message to answer has no sender
      * `:reply_to` - the message to answer asks that answers go to somebody else than its sender
      * `:invalid` - a value cannot be written into a mail
      * `:unreadable` - a mail cannot be read
      * `:library` - the native library of connections is not built
    * `:reason` - more about `:invalid`, `:unreadable` and `:library`, or `nil`
    * `:size`, `:limit` - bytes, for `:too_large`; numbers, for `:recipients`
    * `:id` - the message to answer, for `:address` and `:reply_to`
    * `:addresses` - the sender and the other one, for `:reply_to`; those that the service does
      not take, for `:international`

  ## Examples

      iex> error = %Skillbook.MailError{kind: :too_large, size: 31_000_000, limit: 26_214_400}
      iex> Exception.message(error)
      "the attachments have 31.0 MB together, and a mail takes at most 26.2 MB. Send fewer of " <>
        "them, or share them on a drive and send the links"
  """

  alias Skillbook.Support.External

  @type t :: %__MODULE__{
          kind:
            :unclear
            | :unsaved
            | :too_large
            | :recipients
            | :international
            | :address
            | :reply_to
            | :invalid
            | :unreadable
            | :library,
          reason: String.t() | nil,
          size: non_neg_integer() | nil,
          limit: pos_integer() | nil,
          id: String.t() | nil,
          addresses: [String.t()] | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :reason, :size, :limit, :id, :addresses]

  @impl true
  def message(%{kind: :unclear}) do
    "the connection was lost while the mail was sent, so it is not known whether it was. " <>
      "Do not send it again: tell the user, and look for it later with " <>
      "`email.search --label sent --limit 5`"
  end

  def message(%{kind: :unsaved}) do
    "the mail was sent, but no copy of it could be stored among the sent mails. Do not send " <>
      "it again"
  end

  def message(%{kind: :too_large} = error) do
    "the attachments have #{megabytes(error.size)} together, and a mail takes at most " <>
      "#{megabytes(error.limit)}. Send fewer of them, or share them on a drive and send the links"
  end

  def message(%{kind: :recipients} = error) do
    "the mail has #{error.size} recipients, and one mail takes at most #{error.limit}. Send " <>
      "it to a mailing list, or in several mails"
  end

  def message(%{kind: :international, addresses: addresses}) do
    "the account's server takes no addresses with letters outside ASCII before the @: " <>
      "#{Enum.map_join(addresses, ", ", &External.line(&1, 254))}. Ask for another address"
  end

  def message(%{kind: :address, id: id}) do
    "the mail #{id} names no sender to answer to. Say to whom: --to bob@example.com"
  end

  def message(%{kind: :reply_to, id: id, addresses: addresses}) do
    [from, other] = Enum.map(addresses, &External.line(&1, 254))

    "the mail #{id} is from #{from} and asks that answers go to #{other}. Say to whom: --to, " <>
      "with one of them"
  end

  def message(%{kind: :invalid} = error), do: "the mail cannot be written: #{error.reason}"
  def message(%{kind: :unreadable} = error), do: "the mail cannot be read: #{error.reason}"

  def message(%{kind: :library} = error), do: error.reason

  defp megabytes(bytes), do: "#{:erlang.float_to_binary(bytes / 1_000_000, decimals: 1)} MB"
end
