import { invalidField } from '../../endpoints/field-errors.ts'
import type { ChatContentPart, ChatMessage, ChatTool } from '../chat-types.ts'
import type { ChatFields, ChatModels, OneAnswerChatFields } from '../models/chat-models.ts'
import type { ModelId } from '../models/model-request.ts'
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
