import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { FieldRule, FieldRules } from './field-rules.ts'

/** The fields of a chat request that the gateway knows by name. */
export type ChatField = keyof {
  [Field in keyof ChatRequest as string extends Field
    ? never
    : number extends Field
      ? never
      : Field]: ChatRequest[Field]
}

/** A rule for each of them, so that none is passed or lost without a decision. */
export type ChatFieldTable = Readonly<Record<ChatField, FieldRule<ChatRequest>>>

/** The rules of a table that do something: what a request is checked against. */
export function activeRules(table: ChatFieldTable): FieldRules<ChatRequest> {
  return Object.fromEntries(Object.entries(table).filter(([, rule]) => rule !== 'pass'))
}

/** The table of a server that takes every field as it is; a vendor lists what it treats otherwise. */
export const PASS_ALL: ChatFieldTable = {
  model: 'pass',
  messages: 'pass',
  temperature: 'pass',
  top_p: 'pass',
  max_tokens: 'pass',
  max_completion_tokens: 'pass',
  n: 'pass',
  stream: 'pass',
  stream_options: 'pass',
  stop: 'pass',
  presence_penalty: 'pass',
  frequency_penalty: 'pass',
  logit_bias: 'pass',
  logprobs: 'pass',
  top_logprobs: 'pass',
  seed: 'pass',
  tools: 'pass',
  tool_choice: 'pass',
  parallel_tool_calls: 'pass',
  response_format: 'pass',
  reasoning_effort: 'pass',
  user: 'pass',
}
