import { GatewayError } from '../../core/errors.ts'
import type { Conversation } from './chat-turns.ts'
import type { AssistantBlock } from './messages-blocks.ts'
import type { MessagesTurn } from './messages-request.ts'
import type { ModelAbilities } from './model-abilities.ts'

/**
 * Makes a conversation one that the model will answer. One of system text alone becomes a user turn. One that ends with an
 * assistant turn asks the model to continue it, which only some models do; blanks at its end are then removed.
 * @throws GatewayError `unsupported_parameter` naming `messages` when the model does not continue turns, `invalid_request`
 *   when nothing is left to answer.
 */
export function answerable(conversation: Conversation, abilities: ModelAbilities): Conversation {
  const { system, turns } = conversation
  if (turns.length === 0) {
    if (system.length === 0) {
      throw new GatewayError('invalid_request', {
        message: 'messages hold no content that the model could answer.',
        param: 'messages',
      })
    }
    return { system: [], turns: [{ role: 'user', content: [{ type: 'text', text: system.join('\n') }] }] }
  }
  const last = turns.at(-1)
  if (last?.role !== 'assistant') return conversation
  if (!abilities.prefill) {
    throw new GatewayError('unsupported_parameter', {
      message: 'The model does not continue an assistant message: messages must end with a user or tool message.',
      param: 'messages',
    })
  }
  return { system, turns: [...turns.slice(0, -1), { role: 'assistant', content: trimEnd(last.content) }] }
}

function trimEnd(blocks: readonly AssistantBlock[]): AssistantBlock[] {
  const last = blocks.at(-1)
  return last?.type === 'text' ? [...blocks.slice(0, -1), { type: 'text', text: last.text.trimEnd() }] : [...blocks]
}

/** True when the conversation ends with an assistant turn that the model is to continue. */
export function endsWithPrefill(turns: readonly MessagesTurn[]): boolean {
  return turns.at(-1)?.role === 'assistant'
}

/**
 * True when the conversation stands in the middle of a tool loop whose assistant turn does not begin with a thinking block.
 * The API then refuses a thinking budget (Anthropic, "Extended thinking", tool use).
 */
export function loopLacksThinking(turns: readonly MessagesTurn[]): boolean {
  const assistant = turns.findLast((turn) => turn.role === 'assistant')
  if (assistant?.role !== 'assistant') return false
  const first = assistant.content[0]?.type
  const inLoop = assistant.content.some((block) => block.type === 'tool_use')
  return inLoop && first !== 'thinking' && first !== 'redacted_thinking'
}
