import { invalidField } from '../../endpoints/field-errors.ts'
import type { ChatContentPart, ChatMessage, ChatTool } from '../chat-types.ts'
import type { ChatFields, ChatModels, OneAnswerChatFields } from '../models/chat-models.ts'
import type { ModelId } from '../models/model-request.ts'
import type {
  ResponseInputItem,
  ResponseInputPart,
  ResponseReference,
  ResponseRequest,
  ResponseTool,
} from '../response-types.ts'
import { Draft, within } from './draft.ts'

/** Maximum number of stop sequences (API specification, "Limits"). */
const MAX_STOP_SEQUENCES = 4

/** A chat request, ready to be sent. */
export type BuiltChat<Model, Stream> = OneAnswerChatFields & { readonly model: Model; readonly stream: Stream }

/** Builds a chat request step by step. Each step replaces the previous value of its field; messages are added. */
export interface ChatBuilder<Model, Stream extends boolean = false> {
  system(text: string): this
  /** Adds a user message: a text, or parts with images. */
  user(content: string | ChatContentPart[]): this
  assistant(text: string): this
  /** Adds the result of a tool call by the model. */
  toolResult(callId: string, content: string): this
  /** Adds any messages, such as those of an earlier answer. */
  messages(...messages: readonly ChatMessage[]): this
  /** Sets the temperature, from 0 to 2. */
  temperature(value: number): this
  /** Sets nucleus sampling, from 0 to 1. */
  topP(value: number): this
  /** Sets the maximum number of output tokens, at least 1. */
  maxTokens(tokens: number): this
  /** Sets up to 4 stop sequences. */
  stop(...sequences: readonly string[]): this
  /** Sets the presence penalty, from -2 to 2. */
  presencePenalty(value: number): this
  /** Sets the frequency penalty, from -2 to 2. */
  frequencyPenalty(value: number): this
  seed(value: number): this
  tools(...tools: readonly ChatTool[]): this
  toolChoice(choice: NonNullable<ChatFields['tool_choice']>): this
  /** Requests an answer in JSON, of the given JSON Schema if there is one. */
  json(schema?: { readonly name: string; readonly schema: Record<string, unknown> }): this
  reasoningEffort(effort: NonNullable<ChatFields['reasoning_effort']>): this
  endUser(id: string): this
  /** Requests the answer in chunks; the last one has the usage. */
  stream(): ChatBuilder<Model, true>
  /** @throws GatewayError `invalid_request` if there is no message. */
  build(): BuiltChat<Model, Stream>
}

/** Starts a chat request. Steps throw a GatewayError `invalid_request` if a value is out of range. */
export function chat<const Model extends ModelId<ChatModels>>(model: Model): ChatBuilder<Model> {
  return new ChatDraft<Model, false>({ model, stream: false, messages: [] })
}

class ChatDraft<Model, Stream extends boolean>
  extends Draft<BuiltChat<Model, boolean>>
  implements ChatBuilder<Model, Stream>
{
  system(text: string): this {
    return this.messages({ role: 'system', content: text })
  }
  user(content: string | ChatContentPart[]): this {
    return this.messages({ role: 'user', content })
  }
  assistant(text: string): this {
    return this.messages({ role: 'assistant', content: text })
  }
  toolResult(callId: string, content: string): this {
    return this.messages({ role: 'tool', tool_call_id: callId, content })
  }
  messages(...messages: readonly ChatMessage[]): this {
    return this.with({ messages: [...this.state.messages, ...messages] })
  }
  temperature(value: number): this {
    return this.with({ temperature: within('temperature', value, [0, 2]) })
  }
  topP(value: number): this {
    return this.with({ top_p: within('top_p', value, [0, 1]) })
  }
  maxTokens(tokens: number): this {
    return this.with({ max_tokens: within('max_tokens', tokens, [1, Number.MAX_SAFE_INTEGER]) })
  }
  stop(...sequences: readonly string[]): this {
    if (sequences.length > MAX_STOP_SEQUENCES) throw invalidField('stop', `at most ${MAX_STOP_SEQUENCES} sequences`)
    return this.with({ stop: [...sequences] })
  }
  presencePenalty(value: number): this {
    return this.with({ presence_penalty: within('presence_penalty', value, [-2, 2]) })
  }
  frequencyPenalty(value: number): this {
    return this.with({ frequency_penalty: within('frequency_penalty', value, [-2, 2]) })
  }
  seed(value: number): this {
    return this.with({ seed: value })
  }
  tools(...tools: readonly ChatTool[]): this {
    return this.with({ tools: [...tools] })
  }
  toolChoice(choice: NonNullable<ChatFields['tool_choice']>): this {
    return this.with({ tool_choice: choice })
  }
  json(schema?: { readonly name: string; readonly schema: Record<string, unknown> }): this {
    return this.with({
      response_format:
        schema === undefined
          ? { type: 'json_object' }
          : { type: 'json_schema', json_schema: { ...schema, strict: true } },
    })
  }
  reasoningEffort(effort: NonNullable<ChatFields['reasoning_effort']>): this {
    return this.with({ reasoning_effort: effort })
  }
  endUser(id: string): this {
    return this.with({ user: id })
  }
  stream(): ChatBuilder<Model, true> {
    return new ChatDraft<Model, true>({ ...this.state, stream: true, stream_options: { include_usage: true } })
  }
  build(): BuiltChat<Model, Stream> {
    if (this.state.messages.length === 0) throw invalidField('messages', 'needs at least one')
    return { ...this.state, messages: [...this.state.messages] } as BuiltChat<Model, Stream>
  }
}

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
