import { isJsonObject } from '../../core/json.ts'
import type { CallerUrl, RemoteMedia } from '../endpoint.ts'
import { addWebUrls, isWebUrl } from '../web-urls.ts'
import type { ResponsesItem, ResponsesRequest } from './responses-request.ts'

/** Returns the addresses that a vendor of the dialect fetches: images, files and MCP servers. */
export function responsesUrls({ input, tools, prompt }: ResponsesRequest): readonly CallerUrl[] {
  const urls: CallerUrl[] = []
  if (Array.isArray(input)) {
    for (const [index, item] of input.entries()) {
      for (const member of ['content', 'output']) addAddresses(item[member], `input[${index}].${member}`, urls)
      addTools(item['tools'], `input[${index}].tools`, urls)
    }
  }
  addTools(tools, 'tools', urls)
  const variables = isJsonObject(prompt) ? prompt['variables'] : undefined
  if (isJsonObject(variables))
    for (const name in variables) addAddresses(variables[name], `prompt.variables.${name}`, urls)
  return urls
}

/** Namespaces and results of tool searches are nested lists of tools. */
function addTools(tools: unknown, path: string, urls: CallerUrl[]): void {
  if (!Array.isArray(tools)) return
  addAddresses(tools, path, urls)
  for (const [index, tool] of tools.entries()) {
    if (!isJsonObject(tool)) continue
    addAddresses(tool['input_image_mask'], `${path}[${index}].input_image_mask`, urls)
    addTools(tool['tools'], `${path}[${index}].tools`, urls)
  }
}

/** Adds the addresses of a part, or of each part of a list. Other members are arbitrary texts, such as output of a program. */
function addAddresses(part: unknown, path: string, urls: CallerUrl[]): void {
  if (Array.isArray(part)) {
    for (const [index, each] of part.entries()) if (!Array.isArray(each)) addAddresses(each, `${path}[${index}]`, urls)
  } else if (isJsonObject(part)) {
    for (const name in part) if (name.endsWith('_url')) addWebUrls({ [name]: part[name] }, path, urls)
  }
}

/** Returns the images of a request with a URL, in messages and tool outputs, or `undefined`. */
export function remotePictures(request: ResponsesRequest): RemoteMedia<ResponsesRequest> | undefined {
  const { input } = request
  if (!Array.isArray(input)) return undefined
  const urls: CallerUrl[] = []
  walk(input, (url, param) => {
    urls.push({ url, param })
    return undefined
  })
  if (urls.length === 0) return undefined
  return {
    urls,
    inline(dataUrls) {
      let next = 0
      return { ...request, input: walk(input, () => dataUrls[next++]) }
    },
  }
}

/** Called for each image in the order of the request. Returns its replacement, or `undefined` to keep it. */
type Visit = (url: string, param: string) => string | undefined

function walk(items: readonly ResponsesItem[], visit: Visit): ResponsesItem[] {
  return items.map((item, index) => {
    for (const member of ['content', 'output']) {
      const parts = item[member]
      if (Array.isArray(parts)) return { ...item, [member]: walkParts(parts, `input[${index}].${member}`, visit) }
    }
    return item
  })
}

function walkParts(parts: readonly unknown[], path: string, visit: Visit): unknown[] {
  return parts.map((part, index) => {
    if (!isJsonObject(part) || part['type'] !== 'input_image' || !isWebUrl(part['image_url'])) return part
    const replaced = visit(part['image_url'], `${path}[${index}].image_url`)
    return replaced === undefined ? part : { ...part, image_url: replaced }
  })
}
