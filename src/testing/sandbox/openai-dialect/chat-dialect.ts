import type { TurnUsage } from '../model/chat-turn.ts'

/** In what the vendors of OpenAI's chat format differ when they answer. */
export interface ChatDialect {
  /** The model id in answers, from the one asked for. */
  answerModel(asked: string): string
  /** `reasoning_content` holds the reasoning; else it shows in the usage report only. */
  readonly showsReasoning: boolean
  /** Messages have `refusal` and `annotations`, answers `service_tier`, chunks `obfuscation`. */
  readonly hasOfficialExtras: boolean
  /** The id that later pieces of a tool call carry, when they carry one. */
  readonly laterToolCallId: string | undefined
  /** `usage` as this vendor lays it out. */
  usage(usage: TurnUsage): Record<string, unknown>
}
