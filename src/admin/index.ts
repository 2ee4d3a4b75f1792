/**
 * Administration of the gateway as JSON over HTTP, for operators.
 *
 * @example import { adminHandler } from 'signalbox/admin' import { expressHandler } from 'signalbox/express'
 *
 * app.use('/admin', expressHandler(adminHandler(gateway, { operatorKeys: [{ name: 'ops', key: process.env.OPERATOR_KEY }] })))
 */

export { type AdminHandlerOptions, adminHandler } from './admin-handler.ts'
export {
  OPERATOR_SCOPES,
  type Operator,
  type OperatorKey,
  type OperatorRequest,
  type OperatorRules,
  type OperatorScope,
} from './admin-route.ts'
