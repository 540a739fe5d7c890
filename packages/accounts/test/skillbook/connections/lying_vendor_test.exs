defmodule Skillbook.Connections.LyingVendorTest do
  # A token endpoint that answers other things than RFC 6749 says.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.{Account, Google, OAuth}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.HTTPServer

  @refresh "1//r3fresh+token=&%"
  @secret "cl13nt/s3cret+x"

  defp account(url, options \\ %{client_id: "client", client_secret: fn -> @secret end}) do
    %Account{book: nil, name: :google, vendor: Google, profile: "ann", url: url, options: options}
  end

  # A second request would be refused.
  defp refresh(steps) do
    {_pid, url} = HTTPServer.start([steps])
    OAuth.refresh(account(url), fn -> @refresh end, 2_000)
  end

  defp json(fields) when is_map(fields), do: json(JSON.encode(fields))
  defp json(text), do: HTTPServer.answer(text, [{"content-type", "application/json"}])

  defp refused(fields), do: [{:head, 400, []}, {:chunk, JSON.encode(fields)}, :end]

  @no_token {:unavailable, "it answered with something else than a token", nil}

  test "an answer that is no token is none" do
    for text <- [
          "",
          "[1]",
          "null",
          "<html>Welcome to the hotel</html>",
          String.duplicate("[", 60_000),
          <<"{\"access_token\":\"a\",\"scope\":\"", 255, "\"}">>,
          ~s({"access_token":"a","access_token":"b"}),
          ~s({"access_token":5}),
          ~s({"access_token":""}),
          ~s({"access_token":"a\\r\\nx: y"}),
          ~s({"access_token":"ä"}),
          ~s({"access_token":"#{String.duplicate("a", 16_385)}"}),
          ~s({"access_token":"a","token_type":"mac"}),
          ~s({"access_token":"a","token_type":null}),
          ~s({"access_token":"a","token_type":["bearer"]}),
          ~s({"access_token":"a","expires_in":1e400}),
          ~s({"error":["invalid_grant"]})
        ] do
      assert {text, refresh(json(text))} == {text, {:error, @no_token}}
    end

    # Some vendors write errors with the status of a success.
    assert refresh(json(%{error: "invalid_grant"})) ==
             {:error, {:invalid_grant, "status 200, invalid_grant"}}
  end

  test "a long answer is refused at 64 KiB, and a redirect is not followed" do
    spaces = String.duplicate(" ", 4_096)

    for steps <- [
          json(String.duplicate(" ", 65_537)),
          [{:head, 200, []}, {:endless, "1000\r\n" <> spaces <> "\r\n"}],
          [
            {:head, 200, [{"content-encoding", "gzip"}]},
            {:chunk, :zlib.gzip(String.duplicate(" ", 10_000_000))},
            :end
          ]
        ] do
      assert {:error, {:unavailable, reason, nil}} = refresh(steps)
      assert reason =~ "the response has more than 65536 bytes"
      assert_receive {:request, _}
    end

    for status <- [301, 302, 303, 307, 308] do
      {_pid, elsewhere} = HTTPServer.start([json(%{access_token: "a"})])
      head = {:head, status, [{"location", elsewhere}, {"content-length", "0"}]}
      assert refresh([head]) == {:error, {:unavailable, "status #{status}", nil}}
      assert_receive {:request, %{body: "grant_type=refresh_token" <> _}}
      refute_receive {:request, _}, 10
    end
  end

  # A refresh token of the answer may be new, and the former one used up.
  test "an odd lifetime loses no token" do
    for {lasts, seconds} <- [
          {"3600", 3_600},
          {~s("3600"), 3_600},
          {~s("3600.5"), 3_600},
          {"1e308", 30 * 86_400},
          {"99999999999", 30 * 86_400},
          {"0.5", 1},
          {"0", 1},
          {"-1", 1},
          {"-99999999999", 1},
          {"null", 3_600},
          {"true", 3_600},
          {"[]", 3_600},
          {~s("soon"), 3_600}
        ] do
      text = ~s({"access_token":"a","refresh_token":"next","expires_in":#{lasts}})
      assert {:ok, grant} = refresh(json(text))
      assert {lasts, grant.lasts, grant.refresh.()} == {lasts, 1_000 * seconds, "next"}
    end
  end

  test "refresh tokens and scopes that are none are left out" do
    for value <- ["5", "null", ~s(""), ~s("a\\nb"), ~s(["a"])] do
      text = ~s({"access_token":"a","refresh_token":#{value},"scope":#{value}})
      assert {:ok, %{refresh: nil}} = refresh(json(text))
    end

    for {scope, scopes} <- [
          {"", []},
          {"b a b", ["a", "b"]},
          {"a b\0c \u202Ed e\"f g\\h \e[31m ok", ["a", "ok"]},
          {String.duplicate("a", 1_001) <> " b", ["b"]}
        ] do
      assert {:ok, %{scopes: ^scopes}} = refresh(json(%{access_token: "a", scope: scope}))
    end

    assert {:ok, %{scopes: nil}} = refresh(json(%{access_token: "a"}))
  end

  test "an error repeats no secret, in whatever form" do
    unreserved = &URI.encode(&1, fn character -> URI.char_unreserved?(character) end)

    for {form, written} <- [
          {& &1, "[secret] and [secret]"},
          {&URI.encode_www_form/1, "[secret] and [secret]"},
          {unreserved, "[secret] and [secret]"},
          {&String.downcase(unreserved.(&1)), "[secret] and [secret]"},
          {&String.upcase/1, "[secret] and [secret]"},
          {&binary_part(&1, 0, 12), "[secret] and [secret]"},
          {&binary_part(&1, 3, 9), "[secret] and [secret]"},
          {&inspect/1, ~s(\\"[secret]\\" and \\"[secret]\\")},
          {&Base.encode64/1, "[secret]Q== and [secret]"},
          {&Base.url_encode64(&1, padding: false), "[secret]Q and [secret]"},
          {&Base.encode64("id:" <> &1), "aWQ6[secret]Q== and aWQ6[secret]"},
          {&Base.encode64("client:" <> &1), "Y2xpZW50Oj[secret]U= and Y2xpZW50Om[secret]A=="}
        ] do
      description = "got #{form.(@refresh)} and #{form.(@secret)}"
      {:error, failure} = refresh(refused(%{error: "odd", error_description: description}))
      assert OAuth.text(failure) == ~s(status 400, odd: "got #{written}")
    end

    # Nor is one a code.
    {_pid, url} = HTTPServer.start([refused(%{error: "s3cret.of-client"})])
    options = %{client_id: "client", client_secret: fn -> "s3cret.of-client" end}
    {:error, failure} = OAuth.refresh(account(url, options), fn -> @refresh end, 2_000)
    assert OAuth.text(failure) == "status 400"
  end

  test "an id token counts only for this client" do
    for {claims, identity} <- [
          {%{aud: "client"}, "ann@example.com"},
          {%{aud: ["other", "client"]}, "ann@example.com"},
          {%{aud: "other"}, nil},
          {%{aud: nil}, nil},
          {%{}, nil},
          {%{aud: "client", email_verified: false}, nil},
          {%{aud: "client", email: "a b@example.com"}, nil},
          {%{aud: "client", email: ["ann@example.com"]}, nil}
        ] do
      claims = Map.merge(%{email: "ann@example.com", email_verified: true}, claims)
      id = "e30." <> OAuth.base64url(JSON.encode(claims)) <> ".x"
      # The vendor's userinfo knows nobody.
      {_pid, url} = HTTPServer.start([[{:head, 404, [{"content-length", "0"}]}]])
      grant = %{access: fn -> "a" end, id: fn -> id end, refresh: nil, lasts: 1, scopes: nil}
      assert {claims, OAuth.identity(account(url), grant, 2_000)} == {claims, identity}
    end
  end
end
