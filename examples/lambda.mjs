// @ts-check
/*
 * An AWS Lambda handler for an API Gateway HTTP API or a function URL (payload format 2.0). Build the gateway outside of the handler, on a
 * store that the instances share:
 *
 *   export const handler = lambdaHandler(createGateway({ vendors, prices, store: postgresStore({ url }) }))
 */

/**
 * Members of an event that the handler reads.
 * @typedef {object} HttpEvent
 * @property {string} rawPath
 * @property {string} rawQueryString
 * @property {Record<string, string>} headers
 * @property {string} [body]
 * @property {boolean} isBase64Encoded
 * @property {{ domainName: string, http: { method: string } }} requestContext
 */

// #region shown
import { fetchHandler } from 'signalbox/fetch'

export function lambdaHandler(/** @type {import('signalbox').Gateway} */ gateway) {
  const answer = fetchHandler(gateway)
  return async (/** @type {HttpEvent} */ event) => {
    const { rawPath, rawQueryString, headers, body, isBase64Encoded, requestContext } = event
    const request = new Request(`https://${requestContext.domainName}${rawPath}?${rawQueryString}`, {
      method: requestContext.http.method,
      headers,
      body: body === undefined ? null : Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'),
    })
    const response = await answer(request)
    const bytes = Buffer.from(await response.arrayBuffer())
    // The process is frozen when the handler returns.
    await gateway.workEnded()
    return {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: bytes.toString('base64'),
      isBase64Encoded: true,
    }
  }
}
// #endregion
