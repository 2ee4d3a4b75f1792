import { createHash } from 'node:crypto'

/** The tool of the Responses dialect that a chat function represents. */
export interface CallableTool {
  readonly kind: 'function' | 'custom' | 'tool_search'
  /** Name as the caller wrote it, without its namespace. */
  readonly name: string
  readonly namespace: string | undefined
}

/** Longest name of a tool in a chat (OpenAI API reference, "Create chat completion"). */
const MAX_NAME_LENGTH = 64
const HASH_LENGTH = 8

/** Name of the function that represents a client's tool search. */
export const TOOL_SEARCH_NAME = 'tool_search'

/**
 * Names of tools in a chat, which has no namespaces. A tool of a namespace is `namespace__name`. If that is too long or already
 * used by another tool, it ends with a hash of the full name. The same tools get the same names in every turn.
 */
export class ToolNames {
  readonly #byChatName = new Map<string, CallableTool>()

  /** Returns the chat name of a tool and remembers it. */
  chatNameOf(tool: CallableTool): string {
    const plain = tool.namespace === undefined ? tool.name : `${tool.namespace}__${tool.name}`
    const name = plain.length <= MAX_NAME_LENGTH ? plain : hashed(plain, tool)
    const taken = this.#byChatName.get(name)
    if (taken === undefined || isSame(taken, tool)) {
      this.#byChatName.set(name, taken ?? tool)
      return name
    }
    const other = hashed(plain, tool)
    this.#byChatName.set(other, tool)
    return other
  }

  /** Returns the tool of a chat name. An undeclared name is a function. */
  toolOf(chatName: string): CallableTool {
    return this.#byChatName.get(chatName) ?? { kind: 'function', name: chatName, namespace: undefined }
  }

  /** Whether a chat name belongs to a tool. */
  has(chatName: string): boolean {
    return this.#byChatName.has(chatName)
  }
}

function isSame(one: CallableTool, other: CallableTool): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

function hashed(plain: string, { namespace = '', name }: CallableTool): string {
  const hash = createHash('sha256').update(`${namespace}\u0000${name}`).digest('hex').slice(0, HASH_LENGTH)
  return `${plain.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${hash}`
}
