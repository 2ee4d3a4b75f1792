import { isJsonObject } from '../../core/json.ts'
import { unsupportedField } from '../field-errors.ts'
import { inputItems, type ResponsesRequest } from './responses-request.ts'

const OPERATORS_OWN = 'names an object that belongs to the operator of this gateway'

/** Members of tools that name an object at the vendor. */
const TOOL_MEMBERS = ['vector_store_ids', 'connector_id', 'tunnel_id', 'skill_id', 'file_ids'] as const
/** Objects inside tools that may have such a member. */
const NESTED = ['container', 'environment', 'input_image_mask'] as const

/**
 * Refuses what names objects at the vendor: one key of the operator's serves many accounts, so a caller could name another
 * account's files and stores.
 * @throws GatewayError `unsupported_parameter` naming the member.
 */
export function refuseVendorObjects(request: ResponsesRequest): void {
  for (const field of ['prompt', 'conversation'])
    if (isJsonObject(request[field]) || typeof request[field] === 'string') throw unsupportedField(field, OPERATORS_OWN)
  checkTools(request.tools, 'tools')
  inputItems(request).forEach((item, index) => {
    checkTools(item['tools'], `input[${index}].tools`)
    for (const member of ['content', 'output']) checkParts(item[member], `input[${index}].${member}`)
  })
}

function checkParts(parts: unknown, path: string): void {
  if (!Array.isArray(parts)) return
  parts.forEach((part: unknown, index) => {
    if (isJsonObject(part) && typeof part['file_id'] === 'string')
      throw unsupportedField(`${path}[${index}].file_id`, OPERATORS_OWN)
  })
}

function checkTools(tools: unknown, path: string): void {
  if (!Array.isArray(tools)) return
  tools.forEach((tool: unknown, index) => {
    if (!isJsonObject(tool) || tool['type'] === 'function') return
    const place = `${path}[${index}]`
    if (tool['type'] === 'namespace') checkTools(tool['tools'], `${place}.tools`)
    checkMembers(tool, place)
    for (const name of NESTED) {
      const nested = tool[name]
      if (typeof nested === 'string') throw unsupportedField(`${place}.${name}`, OPERATORS_OWN)
      if (isJsonObject(nested)) checkMembers(nested, `${place}.${name}`)
    }
  })
}

function checkMembers(value: Record<string, unknown>, path: string): void {
  for (const member of [...TOOL_MEMBERS, 'file_id', 'container_id']) {
    const named = value[member]
    if (typeof named === 'string' || (Array.isArray(named) && named.length > 0))
      throw unsupportedField(`${path}.${member}`, OPERATORS_OWN)
  }
}
