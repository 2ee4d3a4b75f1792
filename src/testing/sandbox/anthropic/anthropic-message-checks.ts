import { asList, asObject, asText, isGiven } from '../model/loose-json.ts'
import { refuseAnthropic } from './anthropic-errors.ts'
import { anthropicModelRules } from './anthropic-model-rules.ts'
import { checkToolPairs } from './anthropic-tool-checks.ts'
import { blocksOf } from './content-blocks.ts'
import { isSandboxSignature } from './thinking-signature.ts'

type Json = Readonly<Record<string, unknown>>

const ROLES = ['user', 'assistant', 'system']
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const MAX_BREAKPOINTS = 4

/** The checks of `messages`. Source: Anthropic's documentation of messages, tool use, thinking and caching. */
export function checkAnthropicMessages(request: Json): void {
  const messages = asList(request['messages']).map(asObject)
  if (messages.length === 0) refuseAnthropic('messages: at least one message is required')
  messages.forEach((message, position) => {
    checkMessage(message, position)
  })
  checkSystemPositions(messages)
  checkToolPairs(messages)
  checkPrefill(messages, asText(request['model']))
  checkThinkingFirst(request, messages)
  checkBreakpoints(request)
}

function checkMessage(message: Json, position: number): void {
  const role = asText(message['role'])
  if (!ROLES.includes(role)) {
    refuseAnthropic(`messages.${position}.role: Input should be ${ROLES.map((name) => `'${name}'`).join(', ')}`)
  }
  if (!isGiven(message['content'])) refuseAnthropic(`messages.${position}.content: Field required`)
  const blocks = blocksOf(message)
  if (message['content'] === '' || blocks.length === 0) {
    refuseAnthropic(
      `messages.${position}: all messages must have non-empty content except for the optional final assistant message`,
    )
  }
  blocks.forEach((block, index) => {
    checkBlock(block, role, `messages.${position}.content.${index}`)
  })
}

function checkBlock(block: Json, role: string, place: string): void {
  switch (block['type']) {
    case 'text':
      if (asText(block['text']) === '') refuseAnthropic('messages: text content blocks must be non-empty')
      return
    case 'image':
      if (role !== 'user') refuseAnthropic(`${place}: image blocks are only allowed in user messages`)
      checkImage(asObject(block['source']), place)
      return
    case 'tool_use':
      if (role !== 'assistant') refuseAnthropic(`${place}: \`tool_use\` blocks can only be in \`assistant\` messages`)
      if (!isGiven(block['input']) || Array.isArray(block['input']) || typeof block['input'] !== 'object') {
        refuseAnthropic(`${place}.tool_use.input: Input should be a valid dictionary`)
      }
      return
    case 'tool_result':
      if (role !== 'user') refuseAnthropic(`${place}: \`tool_result\` blocks can only be in \`user\` messages`)
      return
    case 'thinking':
      if (isGiven(block['cache_control']))
        refuseAnthropic(`${place}.thinking.cache_control: Extra inputs are not permitted`)
      if (!isSandboxSignature(block['signature']))
        refuseAnthropic(`${place}: Invalid \`signature\` in \`thinking\` block`)
      return
    case undefined:
      refuseAnthropic(`${place}.type: Field required`)
      break
    case 'image_url':
    case 'input_audio':
    case 'refusal':
    case 'function':
      refuseAnthropic(
        `${place}: Input tag '${block['type']}' found using 'type' does not match any of the expected tags`,
      )
  }
}

function checkImage(source: Json, place: string): void {
  if (source['type'] === 'url' || source['type'] === 'file') return
  if (source['type'] !== 'base64')
    refuseAnthropic(`${place}.image.source: Input tag '${asText(source['type'])}' is not expected`)
  if (!IMAGE_TYPES.includes(asText(source['media_type']))) {
    refuseAnthropic(
      `${place}.image.source.base64.media_type: Input should be ${IMAGE_TYPES.map((type) => `'${type}'`).join(', ')}`,
    )
  }
  if (!/^[A-Za-z0-9+/]+=*$/.test(asText(source['data'])))
    refuseAnthropic(`${place}.image.source.base64: invalid base64 data`)
}

/** A system message follows a user turn and is last or stands before an assistant turn; several count as one. */
function checkSystemPositions(messages: readonly Json[]): void {
  if (messages[0]?.['role'] === 'system') {
    refuseAnthropic('messages.0: use the top-level `system` parameter for the initial system prompt')
  }
  const turns = messages.filter(
    (message, position) => message['role'] !== 'system' || messages[position - 1]?.['role'] !== 'system',
  )
  turns.forEach((message, position) => {
    if (message['role'] !== 'system') return
    const next = turns[position + 1]
    if (turns[position - 1]?.['role'] === 'user' && (next === undefined || next['role'] === 'assistant')) return
    refuseAnthropic('messages: `system` messages must follow a user turn and precede an assistant turn')
  })
}

function checkPrefill(messages: readonly Json[], model: string): void {
  const last = messages.at(-1)
  if (last?.['role'] !== 'assistant') return
  if (!anthropicModelRules(model).takesPrefill) {
    refuseAnthropic(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  if (/\s$/.test(asText(blocksOf(last).at(-1)?.['text']))) {
    refuseAnthropic('messages: final assistant content cannot end with trailing whitespace')
  }
}

/** Within a tool loop, the last assistant turn begins with the thinking that led to the call. */
function checkThinkingFirst(request: Json, messages: readonly Json[]): void {
  if (asObject(request['thinking'])['type'] !== 'enabled') return
  const lastUser = messages.at(-1)
  const isInLoop = lastUser !== undefined && blocksOf(lastUser).some((block) => block['type'] === 'tool_result')
  const position = messages.findLastIndex((message) => message['role'] === 'assistant')
  if (!isInLoop || position === -1) return
  const type = asText(blocksOf(messages[position] ?? {})[0]?.['type'])
  if (type === 'thinking' || type === 'redacted_thinking') return
  refuseAnthropic(
    `messages.${position}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
  )
}

function checkBreakpoints(request: Json): void {
  const blocks = [
    ...asList(request['system']).map(asObject),
    ...asList(request['tools']).map(asObject),
    ...asList(request['messages']).flatMap((message) => blocksOf(asObject(message))),
  ]
  const count = blocks.filter((block) => isGiven(block['cache_control'])).length
  if (count <= MAX_BREAKPOINTS) return
  refuseAnthropic(`A maximum of ${MAX_BREAKPOINTS} blocks with cache_control may be provided. Found ${count}.`)
}
