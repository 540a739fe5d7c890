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
    403 => "The token does not have the scope `api`; for conversations, `chat`.",
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
      paths:
        operations |> Map.new(fn {path, operation} -> path(path, operation) end) |> chat(web),
      components: %{
        securitySchemes: %{
          token: %{
            type: :http,
            scheme: :bearer,
            description:
              "A token with the scope `api`, or `chat`. The application may accept others."
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

  # Its requests and answers are those of `Skillbook.Web.API.Chat`.
  defp chat(paths, web),
    do: if(:chat in web.serve, do: Map.put(paths, "/chat", chat()), else: paths)

  defp chat do
    text = fn more -> Map.merge(%{type: :string}, more) end

    part = %{
      type: :object,
      required: [:type, :text],
      properties: %{type: text.(%{const: "text"})}
    }

    %{
      post: %{
        operationId: :chat,
        summary: "Answers in a conversation, as a UI message stream of Vercel's AI SDK.",
        requestBody: %{
          required: true,
          content: %{
            "application/json" => %{
              schema: %{
                type: :object,
                required: [:id, :messages],
                properties: %{
                  id: text.(%{minLength: 1, maxLength: 200}),
                  trigger: text.(%{const: "submit-message"}),
                  messages: %{
                    type: :array,
                    minItems: 1,
                    maxItems: 1_000,
                    description: "Messages of the SDK, of which the last one is read.",
                    items: %{
                      type: :object,
                      required: [:role, :parts],
                      properties: %{role: text.(%{}), parts: %{type: :array, items: %{}}}
                    },
                    contains: %{
                      type: :object,
                      properties: %{role: %{const: "user"}, parts: %{items: part}}
                    }
                  }
                }
              }
            }
          }
        },
        responses:
          Map.merge(refused(), %{
            "200" => %{
              description: "The chunks of the answer, and `[DONE]`.",
              content: %{"text/event-stream" => %{schema: text.(%{})}}
            },
            "409" => error("The server no longer keeps the conversation."),
            "413" => error("The body is too large."),
            "422" => error("A field of the body is wrong.")
          })
      }
    }
  end

  defp refused do
    Map.new(@refusals, fn {status, _text} ->
      {"#{status}", %{"$ref": "#/components/responses/#{status}"}}
    end)
  end

  defp subject(nil), do: []
  defp subject(name), do: [%{name: name, in: :path, required: true, schema: %{type: :string}}]

  # A field with several values has brackets, as in forms.
  defp field({name, {type, doc}}) do
    name = if match?({:texts, _max}, type), do: "#{name}[]", else: name
    %{name: name, in: :query, description: doc, schema: Operation.input_schema(type)}
  end

  defp responses(operation) do
    result = response("The result.", Operation.output_schema(operation.output))

    answers =
      Map.merge(refused(), %{
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
