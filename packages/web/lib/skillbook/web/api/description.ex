defmodule Skillbook.Web.API.Description do
  @moduledoc false
  # Describes the API by OpenAPI 3.1: its paths with their operations, and the errors that all
  # requests may get before one of these. It depends on no caller.

  alias Skillbook.Support.Operation
  alias Skillbook.Web.Request

  # Those of `Skillbook.Web.call/2`.
  @refusals %{
    400 => "The query or the path cannot be read, or a field of the query is wrong.",
    401 => "There is no token, or a wrong one.",
    403 => "The token does not have the scope `api`.",
    414 => "The query is too long.",
    421 => "The header `host` names another server.",
    429 => "Too many wrong tokens came from this address.",
    503 => "The book is not running, or its database does not answer."
  }

  @etag %{etag: %{description: "Changes with the answer.", schema: %{type: :string}}}
  @known %{
    name: "if-none-match",
    in: :header,
    description: "the `etag` of the answer that the client has",
    schema: %{type: :string}
  }

  @doc "Describes the operations, each with the first segment of its path."
  @spec make([{String.t(), Operation.t()}], Request.t(), Skillbook.Web.t()) :: map()
  def make(operations, request, web) do
    %{
      openapi: "3.1.0",
      info: %{
        title: "Skillbook",
        version: to_string(Application.spec(:skillbook_web, :vsn)),
        description: "Lists and reads the skills that a model of the caller's profile is offered."
      },
      servers: [%{url: Request.url(request, web, ["api"])}],
      # An empty requirement is none.
      security: if(web.authenticate == :none, do: [%{}], else: []) ++ [%{token: []}],
      paths: Map.new(operations, fn {path, operation} -> path(path, operation) end),
      components: %{
        securitySchemes: %{
          token: %{
            type: :http,
            scheme: :bearer,
            description: "A token with the scope `api`. The application may accept others."
          }
        },
        schemas: %{Error: Operation.output_schema(text: [:error])},
        responses: Map.new(@refusals, fn {status, text} -> {"#{status}", error(text)} end)
      }
    }
  end

  defp path(path, operation) do
    subject = if operation.subject, do: "/{#{operation.subject}}"

    {"/#{path}#{subject}",
     %{
       get: %{
         operationId: operation.name,
         summary: operation.doc,
         parameters:
           subject(operation.subject) ++ Enum.map(operation.input, &field/1) ++ [@known],
         responses: responses(operation)
       }
     }}
  end

  defp subject(nil), do: []
  defp subject(name), do: [%{name: name, in: :path, required: true, schema: %{type: :string}}]

  # A field with several values has brackets, as in forms.
  defp field({name, {type, doc}}) do
    name = if match?({:texts, _max}, type), do: "#{name}[]", else: name
    %{name: name, in: :query, description: doc, schema: Operation.input_schema(type)}
  end

  defp responses(operation) do
    refused =
      Map.new(@refusals, fn {status, _text} ->
        {"#{status}", %{"$ref": "#/components/responses/#{status}"}}
      end)

    result = response("The result.", Operation.output_schema(operation.output))

    answers =
      Map.merge(refused, %{
        "200" => Map.put(result, :headers, @etag),
        "304" => %{description: "The client has this answer already.", headers: @etag}
      })

    if operation.subject,
      do: Map.put(answers, "404", error("There is none of this #{operation.subject}.")),
      else: answers
  end

  defp error(text), do: response(text, %{"$ref": "#/components/schemas/Error"})

  defp response(text, schema),
    do: %{description: text, content: %{"application/json" => %{schema: schema}}}
end
