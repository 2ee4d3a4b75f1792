import { type Administration, type AdminRoute, routesOf } from '../admin-route.ts'
import { ACCOUNT_ROUTES, BOOK_ROUTES, HOLD_ROUTES } from './account-routes.ts'
import { KEY_ROUTES } from './key-routes.ts'
import { AUDIT_ROUTES, OPERATOR_ROUTES } from './operator-routes.ts'
import { REQUEST_ROUTES, USAGE_ROUTES } from './request-routes.ts'
import { TASK_ROUTES, WEBHOOK_ROUTES } from './task-routes.ts'
import { MODEL_ROUTES, VENDOR_ROUTES } from './vendor-routes.ts'

/** Routes that need only the store of a gateway. The command line runs them too. */
export const STORE_ROUTES: readonly AdminRoute<Administration>[] = [
  ...routesOf('accounts', ACCOUNT_ROUTES),
  ...routesOf('money', BOOK_ROUTES),
  ...routesOf('holds', HOLD_ROUTES),
  ...routesOf('keys', KEY_ROUTES),
  ...routesOf('usage', USAGE_ROUTES),
  ...routesOf('requests', REQUEST_ROUTES),
  ...routesOf('tasks', WEBHOOK_ROUTES),
  ...routesOf('audit', AUDIT_ROUTES),
]

/** All routes of the admin API. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  ...routesOf('operator', OPERATOR_ROUTES),
  ...STORE_ROUTES,
  ...routesOf('vendors', VENDOR_ROUTES),
  ...routesOf('models', MODEL_ROUTES),
  ...routesOf('tasks', TASK_ROUTES),
]
