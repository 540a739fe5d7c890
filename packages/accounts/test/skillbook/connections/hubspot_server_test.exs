defmodule Skillbook.Connections.HubSpotServerTest do
  # The server of test/support/services refuses what HubSpot's own client could not send, and what
  # HubSpot itself refuses. Tests of the commands rely on that.
  use ExUnit.Case, async: true

  alias Skillbook.HTTP
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Services

  @contacts "/crm/v3/objects/contacts"
  @search @contacts <> "/search"
  @new %{properties: %{email: "new@x.example"}}
  @to_company %{associationCategory: "HUBSPOT_DEFINED", associationTypeId: 279}

  # {method, path and query, body, "violation", {status, category} or the status}
  @table [
    {:get, @contacts <> "/1", nil, 200},
    {:get, @contacts <> "/1?properties=email&properties=phone&associations=companies", nil, 200},
    {:get, @contacts <> "/ann%40x.example?idProperty=email", nil, 200},
    {:get, @contacts <> "/2", nil, {404, "OBJECT_NOT_FOUND"}},
    {:get, @contacts <> "/1?props=email", nil, "hubspot.contacts.get has no parameter 'props'"},
    {:get, @contacts <> "/1?archived=yes", nil, "the parameter 'archived' is no bool: 'yes'"},
    {:get, @contacts <> "?limit=ten", nil, "the parameter 'limit' is no int: 'ten'"},
    {:get, @contacts <> "?limit=1&limit=2", nil, "the parameter 'limit' is given twice"},
    {:get, @contacts <> "/1/letters", nil,
     "GET /crm/v3/objects/contacts/1/letters: HubSpot's description has no such method"},
    {:put, @contacts <> "/1", @new,
     "PUT /crm/v3/objects/contacts/1: HubSpot's description has no such method"},
    {:get, @contacts <> "/1", @new, "hubspot.contacts.get has no body"},
    {:post, @contacts, @new, 201},
    {:post, @contacts, %{properties: %{email: 5}}, "the body.properties.email is no str: 5"},
    {:post, @contacts, %{properties: %{email: nil}}, "the body.properties.email is no str: None"},
    {:post, @contacts, %{props: %{}}, "the body has unknown fields: props"},
    {:post, @contacts, %{}, "the body: Invalid value for `properties`, must not be `None`"},
    {:post, @contacts, [@new],
     "the body is no SimplePublicObjectInputForCreate: [{'properties': {'email': " <>
       "'new@x.example'}}]"},
    {:post, @contacts, {:text, "text/plain", JSON.encode(@new)},
     "content type 'text/plain' where JSON is sent"},
    {:post, @contacts, {:text, "application/json", ~S({"properties":{},"properties":{}})},
     "the body has the name 'properties' twice"},
    {:post, @contacts, %{properties: %{nope: "x"}}, {400, "VALIDATION_ERROR"}},
    {:post, @contacts, %{properties: %{createdate: "2026-01-01"}}, {400, "VALIDATION_ERROR"}},
    {:post, @contacts, %{properties: %{lifecyclestage: "boss"}}, {400, "VALIDATION_ERROR"}},
    {:post, @contacts, %{properties: %{email: "nobody"}}, {400, "VALIDATION_ERROR"}},
    {:post, @contacts, %{properties: %{email: "ANN@x.example"}}, {409, "CONFLICT"}},
    {:post, @contacts, Map.put(@new, :associations, [%{to: %{id: "5"}, types: [@to_company]}]),
     201},
    {:post, @contacts, Map.put(@new, :associations, [%{to: %{id: 5}, types: [@to_company]}]),
     "the body.associations[0].to.id is no str: 5"},
    {:post, @contacts,
     Map.put(@new, :associations, [
       %{to: %{id: "5"}, types: [%{@to_company | associationCategory: "MINE"}]}
     ]),
     "the body.associations[0].types[0]: Invalid value for `association_category` (MINE), " <>
       "must be one of ['HUBSPOT_DEFINED', 'USER_DEFINED', 'INTEGRATOR_DEFINED']"},
    {:post, @contacts,
     Map.put(@new, :associations, [
       %{to: %{id: "5"}, types: [%{@to_company | associationTypeId: 999}]}
     ]), {400, "VALIDATION_ERROR"}},
    {:patch, @contacts <> "/1", %{properties: %{phone: "1"}}, 200},
    {:patch, @contacts <> "/1", %{properties: %{hubspot_owner_id: "99"}},
     {400, "VALIDATION_ERROR"}},
    {:post, @search, %{limit: 5, sorts: ["-createdate"]}, 200},
    {:post, @search, %{limit: "5"}, "the body.limit is no int: '5'"},
    {:post, @search, %{limit: 500}, {400, "VALIDATION_ERROR"}},
    {:post, @search, %{sorts: [%{propertyName: "email"}]},
     "the body.sorts[0] is no str: {'propertyName': 'email'}"},
    {:post, @search, %{filterGroups: [%{filters: [%{propertyName: "email"}]}]},
     "the body.filterGroups[0].filters[0]: Invalid value for `operator`, must not be `None`"},
    {:post, @search,
     %{filterGroups: [%{filters: [%{propertyName: "nope", operator: "EQ", value: "1"}]}]},
     {400, "VALIDATION_ERROR"}},
    {:post, @search,
     %{
       filterGroups: [%{filters: [%{propertyName: "createdate", operator: "GT", value: "today"}]}]
     }, {400, "VALIDATION_ERROR"}},
    {:post, @contacts <> "/batch/read", %{inputs: [%{id: "1"}], properties: []},
     "the body: Invalid value for `properties_with_history`, must not be `None`"},
    {:post, @contacts <> "/batch/read",
     %{inputs: [%{id: "1"}], properties: [], propertiesWithHistory: []}, 200},
    {:post, @contacts <> "/batch/read",
     %{inputs: [%{id: "1"}, %{id: "9"}], properties: [], propertiesWithHistory: []}, 207},
    {:post, "/crm/v3/objects/notes", %{properties: %{hs_note_body: "x"}},
     {400, "VALIDATION_ERROR"}},
    {:post, "/crm/v3/objects/deals", %{properties: %{dealname: "x", dealstage: "nope"}},
     {400, "VALIDATION_ERROR"}},
    {:put, "/crm/v4/objects/contacts/1/associations/default/companies/5", nil, 200},
    {:put, "/crm/v4/objects/contacts/1/associations/companies/5", [@to_company], 201},
    {:get, "/crm/v3/owners/?email=bob%40example.com", nil, 200},
    {:get, "/crm/v3/pipelines/deals", nil, 200},
    {:get, "/crm/v3/properties/contacts", nil, 200}
  ]

  @seed %{
    contacts: [%{id: "1", properties: %{email: "ann@x.example"}}],
    companies: [%{id: "5", properties: %{name: "Acme"}}]
  }

  setup do
    tokens = %{"pat-1" => "all", "pat-2" => ["crm.objects.contacts.read"]}
    %{world: Services.world([hubspot_tokens: tokens, hubspot: @seed], violations: true)}
  end

  defp send_request(world, method, path, body, token) do
    {type, body} =
      case body do
        nil -> {nil, nil}
        {:text, type, text} -> {type, text}
        json -> {"application/json", JSON.encode(json)}
      end

    type = if type, do: [{"content-type", type}], else: []
    token = if token, do: [{"authorization", "Bearer " <> token}], else: []
    request = [method: method, url: world.url <> path, headers: type ++ token, body: body]
    {:ok, response} = HTTP.request(request)
    {:ok, json} = JSON.decode(response.body)
    {response.status, json}
  end

  test "requests that HubSpot's client could not send are refused, others are not" do
    for {method, path, body, expected} <- @table do
      world =
        Services.world([hubspot_tokens: %{"pat-1" => "all"}, hubspot: @seed], violations: true)

      {status, json} = send_request(world, method, path, body, "pat-1")
      [entry] = Services.log(world)

      found =
        cond do
          entry["violation"] -> entry["violation"]
          status in 200..299 -> status
          true -> {status, json["category"]}
        end

      assert {method, path, body, found} == {method, path, body, expected}
    end
  end

  test "tokens: missing, unknown, or without the scope of the method", %{world: world} do
    rows = [
      # Without a token it is not even a request.
      {:get, @contacts <> "/1", nil, nil, {401, "VALIDATION_ERROR"}},
      {:get, @contacts <> "/1", nil, "pat-9", {401, "INVALID_AUTHENTICATION"}},
      {:get, @contacts <> "/1", nil, "pat-2", {200, nil}},
      {:post, @search, %{}, "pat-2", {200, nil}},
      {:post, @contacts, @new, "pat-2", {403, "MISSING_SCOPES"}},
      {:get, "/crm/v3/objects/companies/5", nil, "pat-2", {403, "MISSING_SCOPES"}},
      {:get, "/crm/v3/objects/notes", nil, "pat-2", {200, nil}},
      {:get, "/crm/v3/owners/", nil, "pat-2", {403, "MISSING_SCOPES"}}
    ]

    for {method, path, body, token, expected} <- rows do
      {status, json} = send_request(world, method, path, body, token)
      assert {method, path, {status, json["category"]}} == {method, path, expected}
    end
  end

  test "HubSpot's own client reads what was written", %{world: world} do
    {201, _} = send_request(world, :post, @contacts, @new, "pat-1")
    path = "/crm/v4/objects/contacts/1/associations/default/companies/5"
    {200, _} = send_request(world, :put, path, nil, "pat-1")
    sent = length(Services.log(world))

    assert [
             %{"id" => "1", "associations" => %{"companies" => [["5", nil]]}} = first,
             %{"properties" => %{"email" => "new@x.example"}, "associations" => none}
           ] = Services.judge(world, "hubspot.contacts")

    assert first["properties"]["email"] == "ann@x.example"
    assert none == %{}
    # The judge's own requests are not in the log.
    assert length(Services.log(world)) == sent
  end
end
