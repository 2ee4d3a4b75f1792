import { GatewayError } from '../core/errors.ts'
import { bodyError, type GatewayRequest } from '../core/exchange.ts'
import { mediaType } from '../wire/headers.ts'
import { joinChunks } from '../wire/join-chunks.ts'
import type { PipelineContext } from './pipeline-context.ts'

/**
 * Returns the bytes of a JSON body; empty if there is none.
 * @throws GatewayError `unsupported_media_type`, and the errors of a body that cannot be read.
 */
export function readJsonBytes(
  { bodyLimitBytes }: Pick<PipelineContext, 'bodyLimitBytes'>,
  request: GatewayRequest,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    request.readBody(bodyLimitBytes, (failure, chunks) => {
      if (failure !== undefined) return reject(bodyError(failure, bodyLimitBytes))
      const bytes = joinChunks(chunks)
      if (bytes.byteLength > 0 && mediaType(request.header('content-type')) !== 'application/json')
        return reject(
          new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' }),
        )
      resolve(bytes)
    })
  })
}
