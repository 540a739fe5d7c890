defmodule Skillbook.Web.Attempts do
  @moduledoc false
  # Limits how often a client may send a wrong token or link: 20 times a minute. After that its
  # attempts are refused without a query, except tokens that were right on this node lately:
  # behind a proxy all clients have one address, and one of them must not lock out the others.
  #
  # Tokens are too long to be guessed; the limit keeps load and noise away. Both tables have a
  # fixed size, so two clients may share a place.

  @limit 20
  @places 4_096

  @doc "Makes the tables, once on a node."
  @spec start() :: :ok
  def start do
    tables = %{
      # Two numbers for each place: the minute, and the failures in it.
      failures: :atomics.new(2 * @places, signed: false),
      # A part of the hash of the last right token of each place.
      right: :atomics.new(@places, signed: false),
      salt: :crypto.strong_rand_bytes(16)
    }

    :persistent_term.put(__MODULE__, tables)
  end

  @doc "Seconds until the client may try again; 0 if it may now."
  @spec wait(:inet.ip_address() | :unix | nil) :: non_neg_integer()
  def wait(peer) when peer in [nil, :unix], do: 0

  def wait(peer) do
    %{failures: failures} = tables = tables()
    place = place(tables, peer)
    now = System.monotonic_time(:second)

    if :atomics.get(failures, place) == minute(now) and
         :atomics.get(failures, place + 1) >= @limit,
       do: 60 - Integer.mod(now, 60),
       else: 0
  end

  @doc "Counts a failure of a client."
  @spec failed(:inet.ip_address() | :unix | nil) :: :ok
  def failed(peer) when peer in [nil, :unix], do: :ok

  def failed(peer) do
    %{failures: failures} = tables = tables()
    place = place(tables, peer)
    minute = minute(System.monotonic_time(:second))

    if :atomics.exchange(failures, place, minute) == minute,
      do: :atomics.add(failures, place + 1, 1),
      else: :atomics.put(failures, place + 1, 1)
  end

  @doc "Remembers a right token."
  @spec right(String.t()) :: :ok
  def right(text) do
    {place, mark} = mark(text)
    :atomics.put(tables().right, place, mark)
  end

  @doc "Whether a token was right lately."
  @spec right?(String.t()) :: boolean()
  def right?(text) do
    {place, mark} = mark(text)
    :atomics.get(tables().right, place) == mark
  end

  defp mark(text) do
    <<mark::64, place::16, _rest::binary>> = :crypto.mac(:hmac, :sha256, tables().salt, text)

    {1 + rem(place, @places), mark}
  end

  defp place(tables, peer),
    do: 1 + 2 * :erlang.phash2({tables.salt, network(peer)}, @places)

  @doc "The network that is one client: of IPv6 64 bits, else the address."
  @spec network(:inet.ip_address() | :unix | nil) :: tuple() | :unix | nil
  def network({a, b, c, d, _, _, _, _}), do: {a, b, c, d}
  def network(peer), do: peer

  # The monotonic time may be negative.
  defp minute(seconds), do: Integer.mod(Integer.floor_div(seconds, 60), 0x1_0000_0000)
  defp tables, do: :persistent_term.get(__MODULE__)
end
