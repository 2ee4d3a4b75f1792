import { GatewayError } from '../../core/errors.ts'
import type { ChatMessage } from '../../endpoints/chat/chat-request.ts'
import { contentParts, textParts } from './content-parts.ts'
import type { GeminiContent, GeminiPart } from './generate-content.ts'
import type { ModelAbilities } from './model-abilities.ts'
import { signatureOf, signCurrentTurn } from './thought-signature.ts'
import { ToolStep } from './tool-turns.ts'

/** A conversation as the vendor takes it. */
export interface Conversation {
  readonly systemInstruction: { parts: GeminiPart[] } | undefined
  readonly contents: GeminiContent[]
}

/** A turn under construction; that of a step's responses is filled once all messages are read. */
interface Turn {
  readonly role: GeminiContent['role']
  readonly parts: () => GeminiPart[]
}

/**
 * Translates a chat's messages. System messages are gathered, neighbouring turns of one role become one, and the responses
 * of a step stand right behind its calls, in the order of the calls, wherever they stood in the request (Gemini API,
 * "Function calling": a turn of calls follows a user turn, and one turn holds all its responses).
 * @throws GatewayError `invalid_request` naming a tool message that answers no call; `unsupported_parameter` naming content
 *   that the vendor has no equivalent of.
 */
export function chatContents(
  messages: readonly ChatMessage[],
  abilities: ModelAbilities,
  report: (field: string) => void,
): Conversation {
  const systemParts: GeminiPart[] = []
  const turns: Turn[] = []
  const steps: ToolStep[] = []
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    if (message.role !== 'tool' && typeof message.name === 'string') report('messages.name')
    if (message.role === 'system' || message.role === 'developer') {
      for (const part of contentParts(message.content, `${path}.content`, report)) systemParts.push(part)
    } else if (message.role === 'user') {
      const parts = contentParts(message.content, `${path}.content`, report)
      turns.push({ role: 'user', parts: () => parts })
    } else if (message.role === 'assistant') {
      const step = new ToolStep(message.tool_calls ?? [], `${path}.tool_calls`)
      const parts = assistantParts(message, step, path, report)
      if (step.callParts.length > 0) steps.unshift(step)
      turns.push({ role: 'model', parts: () => parts }, { role: 'user', parts: () => step.responseParts })
    } else if (!steps.some((step) => step.accept(message, path, report))) {
      throw new GatewayError('invalid_request', {
        message: `${path}.tool_call_id: there is no open tool call of this id in the messages before.`,
        param: `${path}.tool_call_id`,
      })
    }
  }
  const contents = mergedContents(turns)
  const hasSystem = systemParts.length > 0
  const asUser = hasSystem && (!abilities.systemInstruction || contents.length === 0)
  if (asUser) prependUser(contents, systemParts)
  // A conversation must begin with the user; histories that begin with a greeting of the assistant get an empty word.
  if (contents[0]?.role === 'model') prependUser(contents, [{ text: ' ' }])
  if (abilities.checksSignatures) signCurrentTurn(contents)
  return { systemInstruction: hasSystem && !asUser ? { parts: systemParts } : undefined, contents }
}

function assistantParts(
  message: ChatMessage,
  step: ToolStep,
  path: string,
  report: (field: string) => void,
): GeminiPart[] {
  const parts = contentParts(message.content, `${path}.content`, report)
  if (parts.length === 0) parts.push(...textParts(message.refusal))
  const signature = signatureOf(message.extra_content)
  if (signature !== undefined) {
    const lastPart = parts.at(-1)
    const firstCall = step.callParts[0]
    // A signature without a text belongs to the call beside it, or came alone at the end of a stream.
    if (lastPart !== undefined) lastPart.thoughtSignature = signature
    else if (firstCall !== undefined) firstCall.thoughtSignature ??= signature
    else parts.push({ text: '', thoughtSignature: signature })
  }
  return [...parts, ...step.callParts]
}

function mergedContents(turns: readonly Turn[]): GeminiContent[] {
  const contents: GeminiContent[] = []
  for (const { role, parts } of turns) {
    const added = parts()
    if (added.length === 0) continue
    const last = contents.at(-1)
    if (last?.role === role) for (const part of added) last.parts.push(part)
    else contents.push({ role, parts: [...added] })
  }
  return contents
}

function prependUser(contents: GeminiContent[], parts: readonly GeminiPart[]): void {
  const first = contents[0]
  if (first?.role === 'user') first.parts.unshift(...parts)
  else contents.unshift({ role: 'user', parts: [...parts] })
}
