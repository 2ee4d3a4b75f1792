import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { unsupportedParameter } from './parameter-errors.ts'

/** The refusal of a file by its id: one key of the operator's serves many accounts, so a caller could name another account's file. */
export function operatorsFile(path: string): Error {
  const place = `${path}.file.file_id`
  return unsupportedParameter(place, `${place}: names an object that belongs to the operator of this gateway`)
}

/** @throws GatewayError `unsupported_parameter` for the first file of the messages that is given by its id. */
export function refuseOperatorFiles(messages: ChatRequest['messages']): void {
  for (let index = 0; index < messages.length; index++) {
    const { content } = messages[index]!
    if (!Array.isArray(content)) continue
    for (let place = 0; place < content.length; place++) {
      const part = content[place]!
      if (part.type === 'file' && isJsonObject(part.file) && typeof part.file['file_id'] === 'string')
        throw operatorsFile(`messages[${index}].content[${place}]`)
    }
  }
}
