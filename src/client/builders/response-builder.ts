import { invalidField } from '../../endpoints/field-errors.ts'
import type { ChatModels } from '../models/chat-models.ts'
import type { ModelId } from '../models/model-request.ts'
import type {
  ResponseInputItem,
  ResponseInputPart,
  ResponseReference,
  ResponseRequest,
  ResponseTool,
} from '../response-types.ts'
import { Draft, within } from './draft.ts'

/** Minimum of `max_output_tokens` (OpenAI API reference, "Create a model response"). */
const LEAST_OUTPUT_TOKENS = 16

/** Response request, ready to be sent with `client.responses.create` or `stream`. */
export type BuiltResponse<Model> = ResponseRequest & { readonly model: Model }

/** Builds a request for a response step by step. Each step replaces the previous value of its field; items are added. */
export interface ResponseBuilder<Model> {
  /** Sets the system text of this request only: later turns do not inherit it. */
  instructions(text: string): this
  /** Adds a user message: a text, or parts with images and files. */
  user(content: string | readonly ResponseInputPart[]): this
  /** Adds the output of a tool call by the model. */
  toolOutput(callId: string, output: string | readonly ResponseInputPart[]): this
  /** Adds any items, such as the output of an earlier answer. */
  items(...items: readonly ResponseInputItem[]): this
  /** Continues a stored answer. */
  continuing(response: ResponseReference): this
  /** Sets whether the answer is stored. Default true. */
  store(isOn: boolean): this
  /** Sets the temperature, from 0 to 2. */
  temperature(value: number): this
  /** Sets nucleus sampling, from 0 to 1. */
  topP(value: number): this
  /** Sets the maximum number of output tokens, at least 16, reasoning included. */
  maxOutputTokens(tokens: number): this
  tools(...tools: readonly ResponseTool[]): this
  toolChoice(choice: NonNullable<ResponseRequest['tool_choice']>): this
  /** Requests an answer in JSON, of the given JSON Schema if there is one. */
  json(schema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> }): this
  /** Sets how much the model reasons, and whether its reasoning is shown. */
  reasoning(settings: NonNullable<ResponseRequest['reasoning']>): this
  endUser(id: string): this
  /** @throws GatewayError `invalid_request` if there is no item and nothing to continue. */
  build(): BuiltResponse<Model>
}

/** Starts a request for a response. Steps throw a GatewayError `invalid_request` if a value is out of range. */
export function response<const Model extends ModelId<ChatModels>>(model: Model): ResponseBuilder<Model> {
  return new ResponseDraft<Model>({ model, input: [] })
}

interface State<Model> extends ResponseRequest {
  readonly model: Model
  readonly input: readonly ResponseInputItem[]
}

class ResponseDraft<Model> extends Draft<State<Model>> implements ResponseBuilder<Model> {
  instructions(text: string): this {
    return this.#set({ instructions: text })
  }
  user(content: string | readonly ResponseInputPart[]): this {
    return this.items({ role: 'user', content })
  }
  toolOutput(callId: string, output: string | readonly ResponseInputPart[]): this {
    return this.items({ type: 'function_call_output', call_id: callId, output })
  }
  items(...items: readonly ResponseInputItem[]): this {
    return this.#set({ input: [...this.state.input, ...items] })
  }
  continuing(response: ResponseReference): this {
    return this.#set({ previous_response_id: typeof response === 'string' ? response : response.id })
  }
  store(isOn: boolean): this {
    return this.#set({ store: isOn })
  }
  temperature(value: number): this {
    return this.#set({ temperature: within('temperature', value, [0, 2]) })
  }
  topP(value: number): this {
    return this.#set({ top_p: within('top_p', value, [0, 1]) })
  }
  maxOutputTokens(tokens: number): this {
    const bounds = [LEAST_OUTPUT_TOKENS, Number.MAX_SAFE_INTEGER] as const
    return this.#set({ max_output_tokens: within('max_output_tokens', tokens, bounds) })
  }
  tools(...tools: readonly ResponseTool[]): this {
    return this.#set({ tools })
  }
  toolChoice(choice: NonNullable<ResponseRequest['tool_choice']>): this {
    return this.#set({ tool_choice: choice })
  }
  json(schema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> }): this {
    const format =
      schema === undefined
        ? ({ type: 'json_object' } as const)
        : ({ type: 'json_schema', ...schema, strict: true } as const)
    return this.#set({ text: { format } })
  }
  reasoning(settings: NonNullable<ResponseRequest['reasoning']>): this {
    return this.#set({ reasoning: settings })
  }
  endUser(id: string): this {
    return this.#set({ user: id })
  }
  build(): BuiltResponse<Model> {
    const { input, previous_response_id: previous } = this.state
    if (input.length === 0 && previous === undefined) throw invalidField('input', 'needs at least one item')
    return { ...this.state, input: [...input] }
  }

  /** Every field can be set, except the model. */
  #set(change: Partial<Omit<State<never>, 'model'>>): this {
    return this.with(change as Partial<State<Model>>)
  }
}
