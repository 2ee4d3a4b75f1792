/** The API takes these characters in the id of a tool use. */
const FORBIDDEN_CHARACTERS = /[^a-zA-Z0-9_-]/g

/** Gives the tool calls of one conversation the ids under which they travel. */
export interface ToolCallIds {
  /** The id of the next call: the caller's own, unless it was used before in the conversation or the API refuses it. */
  assign(callId: string): string
}

/** Makes a source of ids for one conversation. The same conversation always gets the same ids. */
export function toolCallIds(): ToolCallIds {
  const used = new Set<string>()
  return {
    assign(callId) {
      const base = callId.replaceAll(FORBIDDEN_CHARACTERS, '_') || 'call'
      let id = base
      for (let count = 2; used.has(id); count++) id = `${base}_${count}`
      used.add(id)
      return id
    },
  }
}
