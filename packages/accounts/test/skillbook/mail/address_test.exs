defmodule Skillbook.Mail.AddressTest do
  use ExUnit.Case, async: true

  alias Skillbook.Mail.Address

  doctest Address

  # {text, mailboxes}
  for {text, mailboxes} <- [
        {"bob@co.com", [{nil, "bob@co.com"}]},
        {" bob@co.com , ", [{nil, "bob@co.com"}]},
        {"<bob@co.com>", [{nil, "bob@co.com"}]},
        {"Bob B <bob@co.com>", [{"Bob B", "bob@co.com"}]},
        {"Bob B< bob@co.com >", [{"Bob B", "bob@co.com"}]},
        {~S("B, \"Bob\"" <bob@co.com>), [{~S(B, "Bob"), "bob@co.com"}]},
        {"Bob (of sales) B <bob@co.com>", [{"Bob B", "bob@co.com"}]},
        {"bob@co.com (Bob B)", [{"Bob B", "bob@co.com"}]},
        {"a@co.com,B <b@co.com>;c@co.com",
         [{nil, "a@co.com"}, {"B", "b@co.com"}, {nil, "c@co.com"}]},
        {"Jürgen <jürgen@bücher.example>", [{"Jürgen", "jürgen@bücher.example"}]},
        {"o'neil+x@co.com", [{nil, "o'neil+x@co.com"}]},
        {"", :error},
        {"bob", :error},
        {"bob@localhost", :error},
        {"a@b@co.com", :error},
        {"a@co.com b@co.com", :error},
        {"Bob <bob@co.com> x", :error},
        {"Bob <bob@co.com", :error},
        {~S("Bob <bob@co.com>), :error},
        {"Bob <a@co.com> <b@co.com>", :error},
        {"a..b@co.com", :error},
        {"a@-co.com", :error},
        {"a@co..com", :error},
        {"a\r\nBcc: b@co.com", :error},
        {"Team: a@co.com;", :error},
        {<<"a@co.com", 255>>, :error}
      ] do
    test "#{inspect(text)} is #{inspect(mailboxes)}" do
      text = unquote(text)

      case unquote(Macro.escape(mailboxes)) do
        :error ->
          assert Address.list(text) == :error

        mailboxes ->
          mailboxes = for {name, address} <- mailboxes, do: %{name: name, address: address}
          assert Address.list(text) == {:ok, mailboxes}
          # As it is written, it is read back.
          written = Enum.map_join(mailboxes, ", ", &Address.text/1)
          assert Address.list(written) == {:ok, mailboxes}
      end
    end
  end

  # By the codec of Python, and of registries.
  for {domain, ascii} <- [
        {"example.com", "example.com"},
        {"bücher.example", "xn--bcher-kva.example"},
        {"BÜCHER.example", "xn--bcher-kva.example"},
        {"bu\u0308cher.example", "xn--bcher-kva.example"},
        {"münchen.de", "xn--mnchen-3ya.de"},
        {"straße.de", "xn--strae-oqa.de"},
        {"пример.рф", "xn--e1afmkfd.xn--p1ai"},
        {"例え.テスト", "xn--r8jz45g.xn--zckzah"},
        {"a؟.example", :error},
        {"ليهمابتكلموشعربي", "xn--mgbcah9ar9a4efegftvvn"},
        {"他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"},
        {"ほんとうにななめの", "xn--p8j7chadu9f7bvj"},
        {"3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"}
      ] do
    test "the domain #{domain} is sent as #{ascii}" do
      ascii = unquote(ascii)
      expected = if ascii == :error, do: :error, else: {:ok, "a@#{ascii}"}
      assert Address.wire("a@" <> unquote(domain)) == expected
    end
  end

  test "long texts are read in time" do
    for piece <- ["(", ")", "\"", "\\", "<", "a ", "a,", "a@", "<a@b.c>", "\"a\" ", "(a)"] do
      text = String.duplicate(piece, 20_000)
      {time, _} = :timer.tc(fn -> Address.list(text) end)
      assert {piece, time < 2_000_000} == {piece, true}
    end
  end
end
