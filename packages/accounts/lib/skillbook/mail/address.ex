defmodule Skillbook.Mail.Address do
  @moduledoc false
  # Recipients as people write them: addresses with or without names, and lists of them (RFC 5322,
  # section 3.4).

  alias Skillbook.Mail

  @max_bytes 200_000
  @max_address 254
  # No part matches in two ways, so a long text takes time in proportion to its length.
  @quoted ~S{"(?:[^"\\]|\\.)*+"}
  @comment ~S{\([^()]*+\)}
  @plain ~S{[^\s<>(),;"]++}
  @named "((?>#{@quoted}|#{@comment}|[^\"<>(),;@])*+)<\\s*+(#{@plain})\\s*+>"
  @item Regex.compile!(
          "\\A\\s*+(?:#{@named}|(#{@plain}))\\s*+(?:(#{@comment})\\s*+)?(?:[,;]\\s*+|\\z)",
          "u"
        )
  @atom ~S"[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]++"
  @local Regex.compile!("\\A#{@atom}(?:\\.#{@atom})*+\\z", "u")
  @label ~r/\A[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?\z/u

  @doc ~S"""
  The mailboxes of a text.

      iex> alias Skillbook.Mail.Address
      iex> Address.list(~s[Bob B <bob@co.com>, "A, Ann" <ann@co.com>; eve@co.com (Eve)])
      {:ok,
       [
         %{name: "Bob B", address: "bob@co.com"},
         %{name: "A, Ann", address: "ann@co.com"},
         %{name: "Eve", address: "eve@co.com"}
       ]}
      iex> Address.list("Bob <bob>")
      :error
  """
  @spec list(String.t()) :: {:ok, [Mail.address()]} | :error
  def list(text) when byte_size(text) > @max_bytes, do: :error

  def list(text) do
    if String.valid?(text) and not (text =~ ~r/[\x00-\x1F\x7F]/),
      do: list(text, []),
      else: :error
  end

  defp list("", [_ | _] = found), do: {:ok, Enum.reverse(found)}

  defp list(text, found) do
    with [all | parts] <- Regex.run(@item, text),
         [name, within, alone, comment | _] = parts ++ ["", "", ""],
         address = if(within == "", do: alone, else: within),
         true <- valid?(address) and address =~ ~r/@.+\./s do
      rest = binary_part(text, byte_size(all), byte_size(text) - byte_size(all))
      list(rest, [%{name: name(name, comment), address: address} | found])
    else
      _ -> :error
    end
  end

  defp name(name, comment) do
    name = Regex.replace(Regex.compile!(@comment), name, " ")
    name = Regex.replace(~r/"((?:[^"\\]|\\.)*+)"/, name, &unquoted/2)

    case name |> String.split() |> Enum.join(" ") do
      "" -> comment |> String.slice(1..-2//1) |> String.trim() |> presence()
      name -> name
    end
  end

  defp unquoted(_all, text), do: Regex.replace(~r/\\(.)/s, text, "\\1")

  defp presence(""), do: nil
  defp presence(text), do: text

  @doc "Whether a text is an address. Its letters may be outside ASCII."
  @spec valid?(String.t()) :: boolean()
  def valid?(address), do: match?({:ok, _}, wire(address))

  @doc """
  The address as it is sent: its domain in ASCII (RFC 5891).

      iex> Skillbook.Mail.Address.wire("jürgen@Bücher.example")
      {:ok, "jürgen@xn--bcher-kva.example"}
  """
  @spec wire(String.t()) :: {:ok, String.t()} | :error
  def wire(address) do
    with true <- byte_size(address) <= @max_address,
         [local, domain] <- String.split(address, "@"),
         true <- local =~ @local,
         labels = domain |> String.replace("。", ".") |> String.split("."),
         true <- Enum.all?(labels, &(&1 =~ @label)),
         domain = Enum.map_join(labels, ".", &ascii/1),
         true <- domain |> String.split(".") |> Enum.all?(&(byte_size(&1) <= 63)) do
      {:ok, "#{local}@#{domain}"}
    else
      _ -> :error
    end
  end

  @doc "Whether an address needs a server that takes letters outside ASCII before the `@`."
  @spec international?(String.t()) :: boolean()
  def international?(address), do: not ascii?(hd(String.split(address, "@")))

  @doc ~S"""
  A mailbox as a text that `list/1` reads.

      iex> Skillbook.Mail.Address.text(%{name: "A, Ann", address: "ann@co.com"})
      ~S("A, Ann" <ann@co.com>)
  """
  @spec text(Mail.address()) :: String.t()
  def text(%{name: nil, address: address}), do: address

  def text(%{name: name, address: address}) do
    if name =~ ~r/\A[\p{L}\p{M}\p{N} '-]+\z/u,
      do: "#{name} <#{address}>",
      else: ~s("#{String.replace(name, ~r/["\\]/, "\\\\\\0")}" <#{address}>)
  end

  @doc "The mailbox of a text of `text/1`, or the text as an address."
  @spec mailbox(String.t()) :: Mail.address()
  def mailbox(text) do
    case list(text) do
      {:ok, [mailbox]} -> mailbox
      # It is refused with the reason where it is written.
      _ -> parted(Regex.run(~r/\A\s*(.*?)\s*<([^<>]*)>\s*\z/su, text), text)
    end
  end

  defp parted([_, name, address], _text),
    do: %{name: presence(name), address: String.trim(address)}

  defp parted(nil, text), do: %{name: nil, address: String.trim(text)}

  defp ascii?(text), do: for(<<byte <- text>>, byte > 127, do: byte) == []

  # A label of a domain (RFC 3492).
  defp ascii(label) do
    if ascii?(label),
      do: label,
      else: "xn--" <> (label |> String.normalize(:nfc) |> String.downcase() |> punycode())
  end

  defp punycode(label) do
    chars = String.to_charlist(label)
    basic = Enum.filter(chars, &(&1 < 128))
    start = if basic == [], do: [], else: basic ++ [?-]
    count = length(basic)
    later = chars |> Enum.filter(&(&1 >= 128)) |> Enum.uniq() |> Enum.sort()

    {_n, _delta, _bias, _done, digits} =
      Enum.reduce(later, {128, 0, 72, count, []}, fn char, {n, delta, bias, done, digits} ->
        delta = delta + (char - n) * (done + 1)

        {delta, bias, done, digits} =
          Enum.reduce(chars, {delta, bias, done, digits}, fn
            other, {delta, bias, done, digits} when other < char ->
              {delta + 1, bias, done, digits}

            ^char, {delta, bias, done, digits} ->
              bias? = adapt(delta, done + 1, done == count)
              {0, bias?, done + 1, [digits | number(delta, bias, 36)]}

            _other, state ->
              state
          end)

        {char + 1, delta + 1, bias, done, digits}
      end)

    IO.iodata_to_binary([start | digits])
  end

  # A number in digits of variable base.
  defp number(number, bias, k) do
    threshold = min(max(k - bias, 1), 26)

    if number < threshold do
      [digit(number)]
    else
      {rest, digit} = {number - threshold, 36 - threshold}
      [digit(threshold + rem(rest, digit)) | number(div(rest, digit), bias, k + 36)]
    end
  end

  defp digit(number) when number < 26, do: ?a + number
  defp digit(number), do: ?0 + number - 26

  defp adapt(delta, count, first?) do
    delta = if first?, do: div(delta, 700), else: div(delta, 2)
    adapted(delta + div(delta, count), 0)
  end

  defp adapted(delta, k) when delta > 455, do: adapted(div(delta, 35), k + 36)
  defp adapted(delta, k), do: k + div(36 * delta, delta + 38)
end
