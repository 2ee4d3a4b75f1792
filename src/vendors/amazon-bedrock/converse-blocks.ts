import { createHash } from 'node:crypto'
import type { ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import type {
  AssistantBlock,
  CachePointBlock,
  ToolResultBlock,
  ToolResultContent,
  UserBlock,
} from '../shared/messages-content.ts'
import { type ConverseAbilities, DOCUMENT_FORMATS } from './converse-abilities.ts'

/** A block of Converse: an object whose only member names its type (Bedrock, reference of `ContentBlock`). */
export type ConverseBlock = Readonly<Record<string, unknown>>

const MAX_TOOL_ID_CHARACTERS = 64
const SHORT_TOOL_ID_CHARACTERS = 9
const MAX_NAME_CHARACTERS = 200

/** Writes the blocks of one request with unique file names. */
export class ConverseBlockWriter {
  readonly #abilities: Pick<ConverseAbilities, 'hasShortToolIds'>
  readonly #names = new Set<string>()

  constructor(abilities: Pick<ConverseAbilities, 'hasShortToolIds'>) {
    this.#abilities = abilities
  }

  /** Returns the content of a turn. A file must not be alone, so text is added to it. */
  content(blocks: readonly (UserBlock | AssistantBlock)[]): ConverseBlock[] {
    const written = blocks.flatMap((block) => this.#block(block))
    const isFileAlone = written.some((block) => 'document' in block) && !written.some((block) => 'text' in block)
    return isFileAlone ? [{ text: 'See the file.' }, ...written] : written
  }

  #block(block: UserBlock | AssistantBlock): ConverseBlock[] {
    switch (block.type) {
      case 'tool_use':
        return [{ toolUse: { toolUseId: this.#toolId(block.id), name: block.name, input: block.input } }]
      case 'tool_result':
        return this.#toolResult(block)
      case 'thinking':
      case 'redacted_thinking':
        return [{ reasoningContent: reasoning(block) }]
      default:
        return [this.#media(block)]
    }
  }

  #media(block: ToolResultContent): ConverseBlock {
    if (block.type === 'text') return { text: block.text }
    if (block.type === 'cache_point') return cachePoint(block)
    const { source } = block
    // Images given by URL were fetched before, and files have no URLs.
    if (source.type !== 'base64') throw new TypeError('Converse accepts only bytes')
    if (block.type === 'image')
      return { image: { format: source.media_type.slice('image/'.length), source: { bytes: source.data } } }
    const name = this.#fileName(block.title)
    return { document: { format: DOCUMENT_FORMATS.get(source.media_type), name, source: { bytes: source.data } } }
  }

  /** A cache point within the result moves after it, because it is not allowed inside. */
  #toolResult({ tool_use_id: id, content = [], is_error: isError }: ToolResultBlock): ConverseBlock[] {
    const points = content.filter((block) => block.type === 'cache_point')
    const written = content.filter((block) => block.type !== 'cache_point').map((block) => this.#media(block))
    const result = {
      toolUseId: this.#toolId(id),
      content: written.length === 0 ? [{ text: '(empty)' }] : written,
      ...(isError === true ? { status: 'error' } : {}),
    }
    return [{ toolResult: result }, ...points.slice(-1).map(cachePoint)]
  }

  /** Returns an id that the model accepts, equal for a call and its result. */
  #toolId(id: string): string {
    if (this.#abilities.hasShortToolIds === true) return hash(id).slice(0, SHORT_TOOL_ID_CHARACTERS)
    return id.length <= MAX_TOOL_ID_CHARACTERS ? id : hash(id).slice(0, MAX_TOOL_ID_CHARACTERS)
  }

  /** Keeps letters, digits, single spaces and some signs. Repeated names get a number. */
  #fileName(title: string | undefined): string {
    const base =
      (title ?? '')
        .replace(/\.[^.]*$/, '')
        .replace(/[^a-zA-Z0-9()[\]-]+/g, ' ')
        .trim() || 'file'
    let name = base.slice(0, MAX_NAME_CHARACTERS)
    for (let count = 2; this.#names.has(name); count++) name = `${base.slice(0, MAX_NAME_CHARACTERS - 8)} ${count}`
    this.#names.add(name)
    return name
  }
}

/** Converts a cache point to a block. */
export function cachePoint({ ttl }: CachePointBlock): ConverseBlock {
  return { cachePoint: { type: 'default', ...(ttl === undefined ? {} : { ttl }) } }
}

function reasoning(block: ThinkingBlock): ConverseBlock {
  if (block.type === 'redacted_thinking') return { redactedContent: block.data }
  return { reasoningText: { text: block.thinking, signature: block.signature } }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
