import {
  type CompleteRequestParams,
  type CompleteResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server'
import type { Gateway } from '../../gateway/gateway.ts'
import { namesFor } from './resources.ts'

/** Most suggestions of one answer (MCP specification, "Completion"). */
const MAX_VALUES = 100

/**
 * Suggests names for the variable of a resource template.
 * @throws ProtocolError for a template that does not exist.
 */
export function complete(gateway: Gateway, { ref, argument }: CompleteRequestParams): CompleteResult {
  const names = ref.type === 'ref/resource' ? namesFor(gateway, ref.uri, argument.name) : undefined
  if (names === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is nothing to complete by that reference.')
  }
  const values = names.filter((name) => name.startsWith(argument.value))
  return {
    completion: { values: values.slice(0, MAX_VALUES), total: values.length, hasMore: values.length > MAX_VALUES },
  }
}
