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
import { createBuilder, type Steps, within } from './draft.ts'

/** Maximum number of stop sequences (API specification, "Limits"). */
const MAX_STOP_SEQUENCES = 4

/** Named JSON Schema of an answer. */
interface JsonShape {
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
}

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
  json(schema?: JsonShape): this
  reasoningEffort(effort: NonNullable<ChatFields['reasoning_effort']>): this
  endUser(id: string): this
  /** Requests the answer in chunks; the last one has the usage. */
  stream(): ChatBuilder<Model, true>
  /** @throws GatewayError `invalid_request` if there is no message. */
  build(): BuiltChat<Model, Stream>
}

/** Starts a chat request. Steps throw a GatewayError `invalid_request` if a value is out of range. */
export function chat<const Model extends ModelId<ChatModels>>(model: Model): ChatBuilder<Model> {
  return createBuilder<ChatState>({ model, stream: false, messages: [] }, CHAT_STEPS, {
    build(state) {
      if (state.messages.length === 0) throw invalidField('messages', 'needs at least one')
      return { ...state, messages: [...state.messages] }
    },
  })
}

type ChatState = BuiltChat<string, boolean>

const CHAT_STEPS = {
  system: (state, content: string) => withMessages(state, { role: 'system', content }),
  user: (state, content: string | ChatContentPart[]) => withMessages(state, { role: 'user', content }),
  assistant: (state, content: string) => withMessages(state, { role: 'assistant', content }),
  toolResult: (state, callId: string, content: string) =>
    withMessages(state, { role: 'tool', tool_call_id: callId, content }),
  messages: withMessages,
  temperature: (_, value: number) => ({ temperature: within('temperature', value, [0, 2]) }),
  topP: (_, value: number) => ({ top_p: within('top_p', value, [0, 1]) }),
  maxTokens: (_, tokens: number) => ({ max_tokens: within('max_tokens', tokens, [1, Number.MAX_SAFE_INTEGER]) }),
  stop: (_, ...sequences: readonly string[]) => {
    if (sequences.length > MAX_STOP_SEQUENCES) throw invalidField('stop', `at most ${MAX_STOP_SEQUENCES} sequences`)
    return { stop: [...sequences] }
  },
  presencePenalty: (_, value: number) => ({ presence_penalty: within('presence_penalty', value, [-2, 2]) }),
  frequencyPenalty: (_, value: number) => ({ frequency_penalty: within('frequency_penalty', value, [-2, 2]) }),
  seed: (_, seed: number) => ({ seed }),
  tools: (_, ...tools: readonly ChatTool[]) => ({ tools: [...tools] }),
  toolChoice: (_, choice: NonNullable<ChatFields['tool_choice']>) => ({ tool_choice: choice }),
  json: (_, schema?: JsonShape) => ({
    response_format:
      schema === undefined
        ? { type: 'json_object' }
        : { type: 'json_schema', json_schema: { ...schema, strict: true } },
  }),
  reasoningEffort: (_, effort: NonNullable<ChatFields['reasoning_effort']>) => ({ reasoning_effort: effort }),
  endUser: (_, user: string) => ({ user }),
  stream: () => ({ stream: true, stream_options: { include_usage: true } }),
} satisfies Steps<ChatState>

function withMessages(state: ChatState, ...messages: readonly ChatMessage[]): Partial<ChatState> {
  return { messages: [...state.messages, ...messages] }
}

/** Minimum of `max_output_tokens` (OpenAI API reference, "Create a model response"). */
const MIN_OUTPUT_TOKENS = 16

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
  json(schema?: JsonShape): this
  /** Sets how much the model reasons, and whether its reasoning is shown. */
  reasoning(settings: NonNullable<ResponseRequest['reasoning']>): this
  endUser(id: string): this
  /** @throws GatewayError `invalid_request` if there is no item and nothing to continue. */
  build(): BuiltResponse<Model>
}

/** Starts a request for a response. Steps throw a GatewayError `invalid_request` if a value is out of range. */
export function response<const Model extends ModelId<ChatModels>>(model: Model): ResponseBuilder<Model> {
  return createBuilder<ResponseState>({ model, input: [] }, RESPONSE_STEPS, {
    build(state) {
      const { input, previous_response_id: previous } = state
      if (input.length === 0 && previous === undefined) throw invalidField('input', 'needs at least one item')
      return { ...state, input: [...input] }
    },
  })
}

interface ResponseState extends BuiltResponse<string> {
  readonly input: readonly ResponseInputItem[]
}

const RESPONSE_STEPS = {
  instructions: (_, instructions: string) => ({ instructions }),
  user: (state, content: string | readonly ResponseInputPart[]) => withItems(state, { role: 'user', content }),
  toolOutput: (state, callId: string, output: string | readonly ResponseInputPart[]) =>
    withItems(state, { type: 'function_call_output', call_id: callId, output }),
  items: withItems,
  continuing: (_, answer: ResponseReference) => ({
    previous_response_id: typeof answer === 'string' ? answer : answer.id,
  }),
  store: (_, store: boolean) => ({ store }),
  temperature: (_, value: number) => ({ temperature: within('temperature', value, [0, 2]) }),
  topP: (_, value: number) => ({ top_p: within('top_p', value, [0, 1]) }),
  maxOutputTokens: (_, tokens: number) => ({
    max_output_tokens: within('max_output_tokens', tokens, [MIN_OUTPUT_TOKENS, Number.MAX_SAFE_INTEGER]),
  }),
  tools: (_, ...tools: readonly ResponseTool[]) => ({ tools }),
  toolChoice: (_, choice: NonNullable<ResponseRequest['tool_choice']>) => ({ tool_choice: choice }),
  json: (_, schema?: JsonShape) => ({
    text: {
      format: schema === undefined ? { type: 'json_object' } : { type: 'json_schema', ...schema, strict: true },
    },
  }),
  reasoning: (_, reasoning: NonNullable<ResponseRequest['reasoning']>) => ({ reasoning }),
  endUser: (_, user: string) => ({ user }),
} satisfies Steps<ResponseState>

function withItems(state: ResponseState, ...items: readonly ResponseInputItem[]): Partial<ResponseState> {
  return { input: [...state.input, ...items] }
}
