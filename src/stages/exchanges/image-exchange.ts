import { GatewayError } from '../../core/errors.ts'
import type { ImageOperation, ImageOperations, Vendor, VendorCall } from '../../vendors/vendor.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/** Pictures at a vendor, in the shape of request that the model's protocol names. */
export function imagesExchange(vendor: Vendor, call: VendorCall<never>): VendorExchange | undefined {
  const shape = call.model.protocol as keyof ImageOperations | undefined
  const operation = shape === undefined ? undefined : vendor.images?.[shape]
  return operation === undefined ? undefined : exchangeOf(operation as ImageOperation<never>, call)
}

/** Edits of pictures at a vendor. */
export function imageEditsExchange(vendor: Vendor, call: VendorCall<never>): VendorExchange | undefined {
  const operation = vendor.imageEdits
  return operation === undefined ? undefined : exchangeOf(operation as ImageOperation<never>, call)
}

/** @throws GatewayError `unsupported_parameter` for a stream where the vendor has none. */
function exchangeOf(operation: ImageOperation<never>, call: VendorCall<never>): VendorExchange {
  if (call.stream && operation.stream === undefined) {
    throw new GatewayError('unsupported_parameter', {
      message: 'stream: this model answers as a whole only',
      param: 'stream',
    })
  }
  return {
    requests: [operation.toWire(call)],
    whole: ([answer]) => (answer === undefined ? undefined : operation.fromWire(answer.chunks, call)),
    stream: () => operation.stream!(call),
  }
}
