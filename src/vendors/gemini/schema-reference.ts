import { isJsonObject } from '../../core/json.ts'

/**
 * What a local JSON pointer (`#`, `#/$defs/Node`) stands for in a schema; undefined for anything else, such as a pointer
 * into another document. Only own members are followed.
 */
export function referencedSchema(root: unknown, reference: string): Record<string, unknown> | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let target: unknown = root
  for (const step of reference.split('/').slice(1)) {
    const name = memberName(step)
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) return undefined
    target = (target as Record<string, unknown>)[name]
  }
  return isJsonObject(target) ? target : undefined
}

function memberName(step: string): string {
  return percentDecoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A lone percent sign is part of the name.
    return text
  }
}
